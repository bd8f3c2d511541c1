// What the elementwise functions are, for one element: the definition that Reference runs in double and that
// Cpu falls back to in float or double. Called with a constant `fn`, the switches fold away.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>

#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite::scalar {

// Integer arithmetic wraps around; signed overflow would be undefined.

inline std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
inline std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int64_t multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// The remainder with the sign of the divisor; 0 for a divisor of 0.
inline std::int64_t remainder(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;  // INT64_MIN % -1 traps
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// A negative exponent gives 0, except for the bases 1 and -1, whose inverses are integers.
inline std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::int64_t result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

template <std::floating_point T>
T add(T a, T b) {
  return a + b;
}
template <std::floating_point T>
T multiply(T a, T b) {
  return a * b;
}

/// Python's %: the remainder with the sign of the divisor; NaN for a divisor of 0.
template <std::floating_point T>
T remainder(T a, T b) {
  const T r = std::fmod(a, b);
  if (r == 0) return std::copysign(T{0}, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

/// a * b + c with both operations rounded, where a compiler is free to fuse them: for results that must have
/// the same bits on every machine.
inline double multiply_then_add(double a, double b, double c) {
  const volatile double product = a * b;
  return product + c;
}
inline std::int64_t multiply_then_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  return add(multiply(a, b), c);
}

/// `u` in [0, 1) stretched to [low, high): low + u * (high - low) in double, rounded once to T. A value that
/// rounds up to `high` becomes `low`, so that the interval stays half open.
template <class T>
T uniform_between(double low, double high, double u) {
  const T value = convert<T>(multiply_then_add(u, high - low, low));
  return convert<double>(value) < high ? value : convert<T>(low);
}

/// Without overflow of exp for large negative x.
template <std::floating_point T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : T{1}) / (1 + e);
}

inline constexpr double sqrt_2_over_pi = 0.7978845608028654;
inline constexpr double gelu_cubic = 0.044715;
inline constexpr double sqrt_half = 0.7071067811865476;

// From here on one function a line, to be read as a table.
// clang-format off

/// Of integers. The functions with an alpha and the other real ones never get here: their operands are
/// promoted to floats first.
inline std::int64_t apply_unary(op::UnaryFn fn, std::int64_t x, double /*alpha*/ = 1) {
  using enum op::UnaryFn;
  switch (fn) {
    case neg: return subtract(0, x);
    case abs: return x < 0 ? subtract(0, x) : x;
    case sign: return (x > 0) - (x < 0);
    case square: return multiply(x, x);
    case relu: return x < 0 ? 0 : x;
    case logical_not: return x == 0;
    case isnan: return 0;
    case isfinite: return 1;
    default: return x;  // floor, ceil, round
  }
}

/// NaN stays NaN in every function but the last three. Bool results are 0 or 1.
template <std::floating_point T>
T apply_unary(op::UnaryFn fn, T x, T alpha) {
  using enum op::UnaryFn;
  switch (fn) {
    case neg: return -x;
    case abs: return std::abs(x);
    case sign: return x != x ? x : static_cast<T>((x > 0) - (x < 0));
    case square: return x * x;
    case relu: return x <= 0 ? T{0} : x;
    case floor: return std::floor(x);
    case ceil: return std::ceil(x);
    case round: return std::nearbyint(x);
    case sqrt: return std::sqrt(x);
    case rsqrt: return 1 / std::sqrt(x);
    case reciprocal: return 1 / x;
    case exp: return std::exp(x);
    case expm1: return std::expm1(x);
    case log: return std::log(x);
    case log1p: return std::log1p(x);
    case sin: return std::sin(x);
    case cos: return std::cos(x);
    case tan: return std::tan(x);
    case tanh: return std::tanh(x);
    case sigmoid: return scalar::sigmoid(x);
    case erf: return std::erf(x);
    // x / 2 (1 + tanh u) = x sigmoid(2 u), without the cancellation for negative x
    case gelu_tanh: return x * scalar::sigmoid(T(2 * sqrt_2_over_pi) * (x + T(gelu_cubic) * x * x * x));
    case gelu_erf: return x / 2 * std::erfc(-x * T(sqrt_half));
    case silu: return x * scalar::sigmoid(x);
    case softplus: {
      const T z = alpha * x;
      return ((z < 0 ? T{0} : z) + std::log1p(std::exp(-std::abs(z)))) / alpha;
    }
    case elu: return x > 0 ? x : alpha * std::expm1(x);
    case leaky_relu: return x > 0 ? x : alpha * x;
    case logical_not: return x == 0;
    case isnan: return std::isnan(x);
    case isfinite: return std::isfinite(x);
  }
  return x;
}

/// f'(x), from x or from y = f(x) as op::Unary::differentiates_from_output says. 0 for the step functions and
/// for bool results.
template <std::floating_point T>
T apply_unary_derivative(op::UnaryFn fn, T saved, T alpha) {
  using enum op::UnaryFn;
  const T x = saved, y = saved;
  switch (fn) {
    case neg: return -1;
    case abs: return apply_unary(sign, x, alpha);
    case square: return 2 * x;
    case relu: return x > 0;
    case sqrt: return T(0.5) / y;
    case rsqrt: return T(-0.5) * y * y * y;
    case reciprocal: return -(y * y);
    case exp: return y;
    case expm1: return y + 1;
    case log: return 1 / x;
    case log1p: return 1 / (x + 1);
    case sin: return std::cos(x);
    case cos: return -std::sin(x);
    case tan: return y * y + 1;
    case tanh: return 1 - y * y;
    case sigmoid: return y * (1 - y);
    case erf: return T(1.1283791670955126) * std::exp(-(x * x));  // 2 / sqrt(pi)
    // Beyond the bounds of these three the slope is 0 or 1, and infinity times 0 would be NaN.
    case gelu_tanh: {
      const T a = std::clamp(x, T(-30), T(30)), g = scalar::sigmoid(T(2 * sqrt_2_over_pi) * (a + T(gelu_cubic) * a * a * a));
      return g + g * (1 - g) * a * T(2 * sqrt_2_over_pi) * (1 + T(3 * gelu_cubic) * a * a);
    }
    case gelu_erf: {
      const T a = std::clamp(x, T(-40), T(40)), pdf = T(0.3989422804014327) * std::exp(-(a * a) / 2);  // 1 / sqrt(2 pi)
      return std::erfc(-a * T(sqrt_half)) / 2 + a * pdf;
    }
    case silu: {
      const T a = std::clamp(x, T(-800), T(800)), g = scalar::sigmoid(a);
      return g * (1 + a * (1 - g));
    }
    case softplus: return scalar::sigmoid(alpha * x);
    case elu: return x > 0 ? T{1} : alpha * std::exp(x);
    case leaky_relu: return x > 0 ? T{1} : alpha;
    default: return 0;
  }
}

/// Of integers. div and atan2 never get here: their operands are promoted to floats first.
inline std::int64_t apply_binary(op::BinaryFn fn, std::int64_t a, std::int64_t b) {
  using enum op::BinaryFn;
  switch (fn) {
    case add: return scalar::add(a, b);
    case sub: return subtract(a, b);
    case mul: return multiply(a, b);
    case pow: return power(a, b);
    case maximum: return a > b ? a : b;
    case minimum: return a < b ? a : b;
    case remainder: return scalar::remainder(a, b);
    case eq: return a == b;
    case ne: return a != b;
    case lt: return a < b;
    case le: return a <= b;
    case gt: return a > b;
    case ge: return a >= b;
    case logical_and: return a != 0 && b != 0;
    case logical_or: return a != 0 || b != 0;
    case logical_xor: return (a != 0) != (b != 0);
    default: return 0;
  }
}

/// Bool results are 0 or 1. A NaN is true, as in C++ and NumPy.
template <std::floating_point T>
T apply_binary(op::BinaryFn fn, T a, T b) {
  using enum op::BinaryFn;
  switch (fn) {
    case add: return a + b;
    case sub: return a - b;
    case mul: return a * b;
    case div: return a / b;
    case pow: return std::pow(a, b);
    case maximum: return a > b || a != a ? a : b;
    case minimum: return a < b || a != a ? a : b;
    case remainder: return scalar::remainder(a, b);
    case atan2: return std::atan2(a, b);
    case eq: return a == b;
    case ne: return a != b;
    case lt: return a < b;
    case le: return a <= b;
    case gt: return a > b;
    case ge: return a >= b;
    case logical_and: return a != 0 && b != 0;
    case logical_or: return a != 0 || b != 0;
    case logical_xor: return (a != 0) != (b != 0);
  }
  return a;
}

// clang-format on
}  // namespace ferrite::scalar
