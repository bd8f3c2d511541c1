// What the elementwise functions are on the GPU, for one element: the semantics of
// backend_cpu/math/scalar_functions.hpp, in float, double or std::int64_t. Elementary functions are CUDA's
// (at most 2 ulp in f32, 4 for erfc); where the f32 version here differs from them, a comment says why.
#pragma once

#include <cmath>

#include "backend_cuda/kit/elementwise.cuh"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite::cuda {

using op::BinaryFn;
using op::LossFn;
using op::UnaryFn;

/// 1 / x for x in [1, 2], below 1 ulp: a full division costs three times as much, half of what sigmoid and
/// gelu may take at the speed of memory.
__device__ __forceinline__ float inverse_near_one(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return fmaf(r, fmaf(-x, r, 1.0f), r);
}
__device__ __forceinline__ double inverse_near_one(double x) { return 1 / x; }

/// Without overflow of exp for large negative x.
template <class C>
__device__ __forceinline__ C sigmoid(C x) {
  const C e = std::exp(-std::abs(x)), r = inverse_near_one(1 + e);
  return x < 0 ? e * r : r;
}
/// For results of 16 bits, within 2^-20: twice as fast, which keeps gelu of bf16 at the speed of memory.
__device__ __forceinline__ float coarse_sigmoid(float x) {
  float e, r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(e) : "f"(-std::abs(x) * 1.44269504f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1 + e));
  return x < 0 ? e * r : r;
}
/// NaN stays.
template <class C>
__device__ __forceinline__ C clamped(C x, C limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}

__device__ __forceinline__ std::int64_t wrapping_product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
__device__ __forceinline__ std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// Python's %: the sign of the divisor; by 0 it is NaN, of integers 0.
template <class C>
__device__ __forceinline__ C remainder_of(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    if (b == 0 || b == -1) return 0;
    const C r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    const C r = std::fmod(a, b);
    if (r == 0) return std::copysign(C{0}, b);
    return (r < 0) != (b < 0) ? r + b : r;
  }
}

/// A negative exponent gives 0, except for the bases 1 and -1, whose inverses are integers.
__device__ __forceinline__ std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::int64_t result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result = wrapping_product(result, base);
    base = wrapping_product(base, base);
  }
  return result;
}

// clang-format off
/// Of integers. The functions with real results never get here: their operands are promoted to floats first.
template <UnaryFn fn>
__device__ __forceinline__ auto apply_unary(std::int64_t x, std::int64_t) {
  using enum UnaryFn;
  if constexpr (fn == neg) return wrapping_difference(0, x);
  else if constexpr (fn == abs) return x < 0 ? wrapping_difference(0, x) : x;
  else if constexpr (fn == sign) return static_cast<std::int64_t>((x > 0) - (x < 0));
  else if constexpr (fn == square) return wrapping_product(x, x);
  else if constexpr (fn == relu) return x < 0 ? std::int64_t{0} : x;
  else if constexpr (fn == logical_not) return x == 0;
  else if constexpr (fn == isnan) return false;
  else if constexpr (fn == isfinite) return true;
  else return x;  // floor, ceil, round
}

/// NaN stays NaN in every function but the last three.
template <UnaryFn fn, std::floating_point C>
__device__ __forceinline__ auto apply_unary(C x, C alpha) {
  using enum UnaryFn;
  constexpr C two_over_pi_root = C(2 * 0.7978845608028654);
  if constexpr (fn == neg) return -x;
  else if constexpr (fn == abs) return std::abs(x);
  else if constexpr (fn == sign) return x != x ? x : static_cast<C>((x > 0) - (x < 0));
  else if constexpr (fn == square) return x * x;
  else if constexpr (fn == relu) return x <= 0 ? C{0} : x;
  else if constexpr (fn == floor) return std::floor(x);
  else if constexpr (fn == ceil) return std::ceil(x);
  else if constexpr (fn == round) return std::rint(x);  // half to even
  else if constexpr (fn == sqrt) return std::sqrt(x);
  else if constexpr (fn == rsqrt) return static_cast<C>(::rsqrt(x));
  else if constexpr (fn == reciprocal) return 1 / x;
  else if constexpr (fn == exp) return std::exp(x);
  else if constexpr (fn == expm1) return std::expm1(x);
  else if constexpr (fn == log) return std::log(x);
  else if constexpr (fn == log1p) return std::log1p(x);
  else if constexpr (fn == sin) return std::sin(x);
  else if constexpr (fn == cos) return std::cos(x);
  else if constexpr (fn == tan) return std::tan(x);
  else if constexpr (fn == tanh) return std::tanh(x);
  else if constexpr (fn == sigmoid) return cuda::sigmoid(x);
  else if constexpr (fn == erf) return std::erf(x);
  // x / 2 (1 + tanh u) = x sigmoid(2 u), without the cancellation for negative x
  else if constexpr (fn == gelu_tanh) return x * cuda::sigmoid(x * (two_over_pi_root + two_over_pi_root * C(0.044715) * x * x));
  else if constexpr (fn == gelu_erf) return x / 2 * std::erfc(-x * C(0.7071067811865476));
  else if constexpr (fn == silu) return x * cuda::sigmoid(x);
  else if constexpr (fn == softplus) {
    const C z = alpha * x;
    return ((z < 0 ? C{0} : z) + std::log1p(std::exp(-std::abs(z)))) / alpha;
  }
  else if constexpr (fn == elu) return x > 0 ? x : alpha * std::expm1(x);
  else if constexpr (fn == leaky_relu) return x > 0 ? x : alpha * x;
  else if constexpr (fn == logical_not) return x == 0;
  else if constexpr (fn == isnan) return x != x;
  else return std::abs(x) <= std::numeric_limits<C>::max();  // isfinite
}

/// dy f'(saved), by the rules of op::UnaryBackward's composition: where the derivative chooses, so does the
/// result, and a dy of infinity times a slope of 0 is 0. `s` is x, or y where op::Unary says so.
template <UnaryFn fn, std::floating_point C>
__device__ __forceinline__ C apply_backward(C s, C dy, C alpha) {
  using enum UnaryFn;
  constexpr C two_over_pi_root = C(2 * 0.7978845608028654);
  if constexpr (fn == neg) return -dy;
  else if constexpr (fn == abs) return dy * apply_unary<sign>(s, alpha);
  else if constexpr (fn == square) return dy * s * 2;
  else if constexpr (fn == relu) return s > 0 ? dy : C{0};
  else if constexpr (fn == sqrt) return dy * (C(0.5) / s);
  else if constexpr (fn == rsqrt) return dy * C(-0.5) * s * s * s;  // the slope alone may leave the range
  else if constexpr (fn == reciprocal) return -(dy * s * s);
  else if constexpr (fn == exp) return dy * s;
  else if constexpr (fn == expm1) return dy * (s + 1);
  else if constexpr (fn == log) return dy / s;
  else if constexpr (fn == log1p) return dy / (s + 1);
  else if constexpr (fn == sin) return dy * std::cos(s);
  else if constexpr (fn == cos) return -(dy * std::sin(s));
  else if constexpr (fn == tan) return dy * (s * s + 1);
  else if constexpr (fn == tanh) return dy * (1 - s * s);
  else if constexpr (fn == sigmoid) return dy * (s * (1 - s));
  else if constexpr (fn == erf) return dy * (C(1.1283791670955126) * std::exp(-(s * s)));  // 2 / sqrt(pi)
  else if constexpr (fn == gelu_tanh) {
    const C a = clamped(s, C{30}), z = a * a;  // beyond, the slope is 0 or 1, and infinity times 0 would be NaN
    const C g = cuda::sigmoid(a * (two_over_pi_root + two_over_pi_root * C(0.044715) * z));
    return dy * (g + g * (1 - g) * (a * (two_over_pi_root + two_over_pi_root * C(3 * 0.044715) * z)));
  }
  else if constexpr (fn == gelu_erf) {
    const C a = clamped(s, C{40});
    const C pdf = C(0.3989422804014327) * std::exp(a * a * C(-0.5));  // 1 / sqrt(2 pi)
    return dy * (std::erfc(-a * C(0.7071067811865476)) / 2 + a * pdf);
  }
  else if constexpr (fn == silu) {
    const C a = clamped(s, C{800}), g = cuda::sigmoid(a);
    return dy * (g + g * (a * (1 - g)));
  }
  else if constexpr (fn == softplus) return dy * cuda::sigmoid(s * alpha);
  else if constexpr (fn == elu) return s > 0 ? dy : dy * std::exp(s) * alpha;
  else if constexpr (fn == leaky_relu) return s > 0 ? dy : dy * alpha;
  else return dy * C{0};  // the steps: sign, floor, ceil, round
}

/// Of integers. div and atan2 never get here: their operands are promoted to floats first.
template <BinaryFn fn>
__device__ __forceinline__ auto apply_binary(std::int64_t a, std::int64_t b) {
  using enum BinaryFn;
  if constexpr (fn == add) return sum_of(a, b);
  else if constexpr (fn == sub) return wrapping_difference(a, b);
  else if constexpr (fn == mul) return wrapping_product(a, b);
  else if constexpr (fn == pow) return integer_power(a, b);
  else if constexpr (fn == maximum) return a > b ? a : b;
  else if constexpr (fn == minimum) return a < b ? a : b;
  else if constexpr (fn == remainder) return remainder_of(a, b);
  else return std::int64_t{0};
}
template <BinaryFn fn, std::floating_point C>
__device__ __forceinline__ auto apply_binary(C a, C b) {
  using enum BinaryFn;
  if constexpr (fn == add) return a + b;
  else if constexpr (fn == sub) return a - b;
  else if constexpr (fn == mul) return a * b;
  else if constexpr (fn == div) return a / b;
  else if constexpr (fn == pow) return std::pow(a, b);
  else if constexpr (fn == maximum) return a > b || a != a ? a : b;
  else if constexpr (fn == minimum) return a < b || a != a ? a : b;
  else if constexpr (fn == remainder) return remainder_of(a, b);
  else return std::atan2(a, b);
}
/// Comparisons and logic. A NaN is true, as in C++ and NumPy.
template <BinaryFn fn, class C>
__device__ __forceinline__ bool apply_predicate(C a, C b) {
  using enum BinaryFn;
  if constexpr (fn == eq) return a == b;
  else if constexpr (fn == ne) return a != b;
  else if constexpr (fn == lt) return a < b;
  else if constexpr (fn == le) return a <= b;
  else if constexpr (fn == gt) return a > b;
  else if constexpr (fn == ge) return a >= b;
  else if constexpr (fn == logical_and) return a != 0 && b != 0;
  else if constexpr (fn == logical_or) return a != 0 || b != 0;
  else return (a != 0) != (b != 0);
}

template <LossFn fn, class C>
__device__ __forceinline__ C apply_loss(C x, C t, C delta) {
  const C distance = std::abs(x - t);
  if constexpr (fn == LossFn::mse) return distance * distance;
  else if constexpr (fn == LossFn::l1) return distance;
  else if constexpr (fn == LossFn::huber)
    return distance <= delta ? distance * distance * C(0.5) : (distance - C(0.5) * delta) * delta;
  else return (x < 0 ? C{0} : x) - x * t + std::log1p(std::exp(-std::abs(x)));
}
template <LossFn fn, class C>
__device__ __forceinline__ C apply_loss_slope(C x, C t, C delta) {
  if constexpr (fn == LossFn::mse) return 2 * (x - t);
  else if constexpr (fn == LossFn::l1) return apply_unary<UnaryFn::sign>(x - t, C{1});
  else if constexpr (fn == LossFn::huber) return clamped(x - t, delta);
  else return sigmoid(x) - t;
}
// clang-format on

// The sets of functions, as elementwise.cuh takes them.

struct UnarySet {
  template <class In>
  using Result = ComputeType<In>;
  template <UnaryFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double alpha, In x) {
    using C = ComputeType<In>;
    if constexpr (is_16_bit<In>) {
      constexpr float slope = 2 * 0.7978845608028654f;
      const float z = convert_to<float>(x);
      if constexpr (fn == UnaryFn::sigmoid) return coarse_sigmoid(z);
      if constexpr (fn == UnaryFn::silu) return z * coarse_sigmoid(z);
      if constexpr (fn == UnaryFn::gelu_tanh)
        return z * coarse_sigmoid(z * (slope + slope * 0.044715f * z * z));
    }
    return apply_unary<fn>(convert_to<C>(x), static_cast<C>(alpha));
  }
};

struct UnaryBackwardSet {
  template <class In, class>
  using Result = ComputeType<In>;
  template <UnaryFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double alpha, In saved, In dy) {
    using C = ComputeType<In>;
    return apply_backward<fn>(convert_to<C>(saved), convert_to<C>(dy), static_cast<C>(alpha));
  }
};

struct BinarySet {
  template <class In, class>
  using Result = ComputeType<In>;
  template <BinaryFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double, In a, In b) {
    using C = ComputeType<In>;
    if constexpr (op::is_comparison(fn) || op::is_logical(fn))
      return apply_predicate<fn>(convert_to<C>(a), convert_to<C>(b));
    else
      return apply_binary<fn>(convert_to<C>(a), convert_to<C>(b));
  }
};

struct LossSet {
  template <class In, class>
  using Result = ComputeType<In>;
  template <LossFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double delta, In x, In t) {
    using C = ComputeType<In>;
    return apply_loss<fn>(convert_to<C>(x), convert_to<C>(t), static_cast<C>(delta));
  }
};

struct LossBackwardSet {
  template <class In, class, class>
  using Result = ComputeType<In>;
  template <LossFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double delta, In x, In t, In d) {
    using C = ComputeType<In>;
    return convert_to<C>(d) * apply_loss_slope<fn>(convert_to<C>(x), convert_to<C>(t), static_cast<C>(delta));
  }
};

/// A choice and a copy compute nothing: elements pass as they are.
struct WhereSet {
  template <class, class In, class>
  using Result = In;
  template <int, class Condition, class In>
  __device__ __forceinline__ static In evaluate(double, Condition condition, In a, In b) {
    return condition != Condition{} ? a : b;
  }
};

struct CopySet {
  template <class In>
  using Result = In;
  template <int, class In>
  __device__ __forceinline__ static In evaluate(double, In x) {
    return x;
  }
};

}  // namespace ferrite::cuda
