// Element types: the run-time enum, the C++ types behind it, and the promotion rules.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "ferrite/core/export.hpp"

#if defined(__F16C__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace ferrite {

/// i8, u16 and u32 are for storage: tensors of them are made, copied, cast, gathered from, used as indices,
/// read from files and written to files. Ops that compute reject them.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, bool_, i8, u16, u32 };

inline constexpr DType arithmetic_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                              DType::i32, DType::i64, DType::u8,  DType::bool_};
inline constexpr DType storage_dtypes[] = {DType::i8, DType::u16, DType::u32};
inline constexpr DType all_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                       DType::i32, DType::i64, DType::u8,  DType::bool_,
                                       DType::i8,  DType::u16, DType::u32};
constexpr bool is_storage(DType d) { return d > DType::bool_; }

/// "f32", "bool", ...
FERRITE_API std::string_view to_string(DType dtype);
/// The inverse of to_string; throws DTypeError listing the valid names.
FERRITE_API DType dtype_from_string(std::string_view name);

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return 2;
    default:
      return 1;
  }
}

constexpr bool is_floating(DType d) { return d <= DType::bf16; }
/// The dtype for sums and statistics of a dtype: f64 for f64, else f32.
constexpr DType wide_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }
/// The dtype in which elements of a dtype are computed: f32 for f16 and bf16, i64 for the integers and bool.
constexpr DType compute_dtype(DType dtype) { return is_floating(dtype) ? wide_dtype(dtype) : DType::i64; }
constexpr bool is_integer(DType d) { return d >= DType::i32 && d != DType::bool_; }

/// Machine epsilon of a floating type; 0 for integers and bool, whose results are exact.
FERRITE_API double epsilon(DType dtype);

/// NumPy's result type of two array operands. bf16 ranks beside f16, and the two together give f32. A dtype
/// for storage goes with itself only; else a DTypeError.
FERRITE_API DType promote(DType a, DType b);
/// The result dtype of a function with real results (exp, mean, division): floats keep theirs, integers
/// of 32 and 64 bits become f64, narrower ones and bool f32.
FERRITE_API DType float_result(DType dtype);
/// The result dtype of sum, prod and cumsum: integers and bool widen to i64, floats keep theirs.
FERRITE_API DType sum_result(DType dtype);

/// IEEE binary16 and bfloat16 storage. Arithmetic happens in float; conversion rounds to nearest even.
struct Half {
  std::uint16_t bits = 0;
};
struct BFloat16 {
  std::uint16_t bits = 0;
};

#define FERRITE_INLINE [[gnu::always_inline]] inline
#if defined(__CUDACC__)
#define FERRITE_HOST_DEVICE __host__ __device__
#else
#define FERRITE_HOST_DEVICE
#endif

FERRITE_INLINE float to_float(BFloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

FERRITE_INLINE BFloat16 to_bfloat16(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (u >> 16) | 0x40u;
  return {static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

namespace detail {
/// Portable conversions, used where the compiler offers no binary16 instructions.
FERRITE_API float half_to_float_portable(std::uint16_t bits);
FERRITE_API std::uint16_t float_to_half_portable(float x);
}  // namespace detail

FERRITE_INLINE float to_float(Half x) {
#if defined(__ARM_FP16_FORMAT_IEEE)
  return static_cast<float>(std::bit_cast<__fp16>(x.bits));
#elif defined(__F16C__) && !defined(__CUDACC__)
  return _cvtsh_ss(x.bits);
#else
  return detail::half_to_float_portable(x.bits);
#endif
}

FERRITE_INLINE Half to_half(float x) {
#if defined(__ARM_FP16_FORMAT_IEEE)
  return {std::bit_cast<std::uint16_t>(static_cast<__fp16>(x))};
#elif defined(__F16C__) && !defined(__CUDACC__)
  return {static_cast<std::uint16_t>(_cvtss_sh(x, 0))};
#else
  return {detail::float_to_half_portable(x)};
#endif
}

/// C++ type -> DType. `long` and `long long` both mean i64.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<int> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::bool_;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

namespace detail {
[[noreturn]] FERRITE_API void throw_storage(DType dtype);
}

/// Calls f.template operator()<T>() with the C++ type of `dtype`: the run-time dtype made static once,
/// outside the loop. Arithmetic dtypes only. constexpr, as device code calls it too.
template <class F>
constexpr decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::f16:
      return f.template operator()<Half>();
    case DType::bf16:
      return f.template operator()<BFloat16>();
    case DType::i32:
      return f.template operator()<std::int32_t>();
    case DType::i64:
      return f.template operator()<std::int64_t>();
    case DType::u8:
      return f.template operator()<std::uint8_t>();
    case DType::bool_:
      return f.template operator()<bool>();
    default:
#ifdef __CUDA_ARCH__
      __builtin_unreachable();
#else
      detail::throw_storage(dtype);
#endif
  }
}
/// The same for every dtype.
template <class F>
constexpr decltype(auto) visit_any_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::i8:
      return f.template operator()<std::int8_t>();
    case DType::u16:
      return f.template operator()<std::uint16_t>();
    case DType::u32:
      return f.template operator()<std::uint32_t>();
    default:
      return visit_dtype(dtype, f);
  }
}

/// The same with what elements are computed in: float, double or std::int64_t.
template <class F>
decltype(auto) visit_compute(DType dtype, F&& f) {
  switch (compute_dtype(dtype)) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    default:
      return f.template operator()<std::int64_t>();
  }
}

/// A float that rounds to the same 16-bit value as x itself: inexact values get an odd last bit, so that the
/// second rounding never sees a tie the first one made.
template <class From>
FERRITE_INLINE float round_to_odd(From x) {
  if constexpr (std::is_same_v<From, float> || sizeof(From) < 4) {
    return static_cast<float>(x);
  } else {
    const double exact = static_cast<double>(x);
    const float nearest = static_cast<float>(exact);
    if (static_cast<double>(nearest) == exact || !(nearest - nearest == 0)) return nearest;
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    const double magnitude = exact < 0 ? -exact : exact;
    if (static_cast<double>(std::bit_cast<float>(bits & 0x7fffffffu)) > magnitude) --bits;
    return std::bit_cast<float>(bits | 1u);
  }
}

/// Element conversion with the library's rules: to bool means "is not zero", float to integer truncates
/// (NaN gives 0, values beyond the range saturate), to 16-bit floats rounds to nearest even.
template <class To, class From>
FERRITE_INLINE To convert(From x) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    if constexpr (std::is_same_v<To, From>)
      return x;
    else
      return convert<To>(to_float(x));
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(round_to_odd(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(round_to_odd(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both bounds are powers of two (or 0), hence exact in any floating type.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = From{2} * static_cast<From>(std::numeric_limits<To>::max() / 2 + 1);
    if (!(x == x)) return To{0};
    if (x < low) return std::numeric_limits<To>::min();
    if (x >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace ferrite
