// Scalar types in registers and in memory.
#pragma once

#include <cstdint>

#include "ferrite/core/dtype.hpp"
#include "ferrite/kernel/type.hpp"

namespace ferrite::kernel {

/// `Lane` is the type in registers, `Memory` that in arrays. f16 and bf16 are f32 in registers, rounded after
/// every operation.
template <ScalarType s>
struct Form;
template <class T>
struct PlainForm {
  using Lane = T;
  using Memory = T;
  template <class X>
  FERRITE_INLINE static T round(X x) {
    return static_cast<T>(x);
  }
  FERRITE_INLINE static T load(T x) { return x; }
  FERRITE_INLINE static T store(T x) { return x; }
};
template <class T>
struct HalfForm {
  using Lane = float;
  using Memory = T;
  template <class X>
  FERRITE_INLINE static float round(X x) {
    return to_float(convert<T>(x));
  }
  FERRITE_INLINE static float load(T x) { return to_float(x); }
  FERRITE_INLINE static T store(float x) { return convert<T>(x); }
};
// clang-format off
template <> struct Form<ScalarType::bool_> : PlainForm<std::uint8_t> {};
template <> struct Form<ScalarType::i8> : PlainForm<std::int8_t> {};
template <> struct Form<ScalarType::u8> : PlainForm<std::uint8_t> {};
template <> struct Form<ScalarType::i16> : PlainForm<std::int16_t> {};
template <> struct Form<ScalarType::u16> : PlainForm<std::uint16_t> {};
template <> struct Form<ScalarType::i32> : PlainForm<std::int32_t> {};
template <> struct Form<ScalarType::u32> : PlainForm<std::uint32_t> {};
template <> struct Form<ScalarType::i64> : PlainForm<std::int64_t> {};
template <> struct Form<ScalarType::u64> : PlainForm<std::uint64_t> {};
template <> struct Form<ScalarType::f16> : HalfForm<Half> {};
template <> struct Form<ScalarType::bf16> : HalfForm<BFloat16> {};
template <> struct Form<ScalarType::f32> : PlainForm<float> {};
template <> struct Form<ScalarType::f64> : PlainForm<double> {};

/// Calls f.template operator()<s>() with the scalar type made static.
template <class F>
decltype(auto) visit_scalar(ScalarType type, F&& f) {
  using enum ScalarType;
  switch (type) {
    case bool_: return f.template operator()<bool_>();
    case i8: return f.template operator()<i8>();
    case u8: return f.template operator()<u8>();
    case i16: return f.template operator()<i16>();
    case u16: return f.template operator()<u16>();
    case i32: return f.template operator()<i32>();
    case u32: return f.template operator()<u32>();
    case i64: return f.template operator()<i64>();
    case u64: return f.template operator()<u64>();
    case f16: return f.template operator()<f16>();
    case bf16: return f.template operator()<bf16>();
    case f32: return f.template operator()<f32>();
    default: return f.template operator()<f64>();
  }
}
// clang-format on

}  // namespace ferrite::kernel
