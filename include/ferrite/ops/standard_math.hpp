// Arithmetic of single elements, for the formulas of formulas.hpp: floats by the standard library, and the
// rules for integer overflow.
#pragma once

#include <cmath>
#include <cstdint>

#include "ferrite/core/dtype.hpp"

/// Marks functions used in loops over elements, on the host and in kernels.
#define FERRITE_FORMULA FERRITE_HOST_DEVICE FERRITE_INLINE

namespace ferrite::formulas {

namespace detail {
/// Functions that elements of every kind have.
template <class T>
struct Elements {
  FERRITE_FORMULA T operator()(double value) const { return static_cast<T>(value); }
  FERRITE_FORMULA T let(T x) const { return x; }
  FERRITE_FORMULA T select(bool condition, T a, T b) const { return condition ? a : b; }
  FERRITE_FORMULA T truth(bool condition) const { return condition ? T{1} : T{0}; }
  FERRITE_FORMULA T sign(T x) const { return x != x ? x : static_cast<T>(x > 0) - static_cast<T>(x < 0); }
};
}  // namespace detail

// clang-format off

/// Floating elements, by the standard library (on the GPU: CUDA's).
template <class T>
struct Standard : detail::Elements<T> {
  static constexpr bool is_real = true;
  FERRITE_FORMULA T neg(T x) const { return -x; }
  FERRITE_FORMULA T add(T a, T b) const { return a + b; }
  FERRITE_FORMULA T sub(T a, T b) const { return a - b; }
  FERRITE_FORMULA T mul(T a, T b) const { return a * b; }
  FERRITE_FORMULA T abs(T x) const { return std::abs(x); }
  FERRITE_FORMULA T floor(T x) const { return std::floor(x); }
  FERRITE_FORMULA T ceil(T x) const { return std::ceil(x); }
  FERRITE_FORMULA T round(T x) const { return std::rint(x); }  // half to even
  FERRITE_FORMULA T sqrt(T x) const { return std::sqrt(x); }
  FERRITE_FORMULA T rsqrt(T x) const { return 1 / std::sqrt(x); }
  FERRITE_FORMULA T exp(T x) const { return std::exp(x); }
  FERRITE_FORMULA T expm1(T x) const { return std::expm1(x); }
  FERRITE_FORMULA T log(T x) const { return std::log(x); }
  FERRITE_FORMULA T log1p(T x) const { return std::log1p(x); }
  FERRITE_FORMULA T sin(T x) const { return std::sin(x); }
  FERRITE_FORMULA T cos(T x) const { return std::cos(x); }
  FERRITE_FORMULA T tan(T x) const { return std::tan(x); }
  FERRITE_FORMULA T tanh(T x) const { return std::tanh(x); }
  FERRITE_FORMULA T erf(T x) const { return std::erf(x); }
  FERRITE_FORMULA T erfc(T x) const { return std::erfc(x); }
  FERRITE_FORMULA T pow(T a, T b) const { return std::pow(a, b); }
  FERRITE_FORMULA T fmod(T a, T b) const { return std::fmod(a, b); }
  FERRITE_FORMULA T copysign(T a, T b) const { return std::copysign(a, b); }
  FERRITE_FORMULA T atan2(T a, T b) const { return std::atan2(a, b); }
  /// x limited to `limit` in magnitude; NaN stays.
  FERRITE_FORMULA T within(T x, T limit) const { return x > limit ? limit : x < -limit ? -limit : x; }
};

/// Integers wrap around: in unsigned arithmetic, since signed overflow is undefined.
template <>
struct Standard<std::int64_t> : detail::Elements<std::int64_t> {
  using T = std::int64_t;
  using U = std::uint64_t;
  static constexpr bool is_real = false;
  FERRITE_FORMULA T add(T a, T b) const { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }
  FERRITE_FORMULA T sub(T a, T b) const { return static_cast<T>(static_cast<U>(a) - static_cast<U>(b)); }
  FERRITE_FORMULA T mul(T a, T b) const { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); }
  FERRITE_FORMULA T neg(T x) const { return sub(0, x); }
  FERRITE_FORMULA T abs(T x) const { return x < 0 ? neg(x) : x; }
  /// With the sign of the divisor; 0 for a divisor of 0.
  FERRITE_FORMULA T remainder(T a, T b) const {
    if (b == 0 || b == -1) return 0;  // INT64_MIN % -1 traps
    const T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  /// A negative exponent gives 0, except for the bases 1 and -1, whose inverses are integers.
  FERRITE_FORMULA T pow(T base, T exponent) const {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    T result = 1;
    for (; exponent > 0; exponent /= 2) {
      if (exponent % 2 == 1) result = mul(result, base);
      base = mul(base, base);
    }
    return result;
  }
};

// clang-format on
}  // namespace ferrite::formulas
