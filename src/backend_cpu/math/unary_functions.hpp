// What the Cpu backend computes for one element of each unary function and derivative: the branch-free
// versions of math/fast_math.hpp where f32 has one, the definitions of scalar_functions.hpp elsewhere.
#pragma once

#include "backend_cpu/math/scalar_functions.hpp"
#include "math/fast_math.hpp"

namespace ferrite::cpu {

using op::UnaryFn;

// clang-format off

template <UnaryFn fn>
FERRITE_INLINE float apply(float x, float alpha) {
  using enum UnaryFn;
  if constexpr (fn == sign) return x != x ? x : static_cast<float>(x > 0) - static_cast<float>(x < 0);
  else if constexpr (fn == exp) return fast::exp(x);
  else if constexpr (fn == expm1) return fast::expm1(x);
  else if constexpr (fn == log) return fast::log(x);
  else if constexpr (fn == log1p) return fast::log1p(x);
  else if constexpr (fn == tanh) return fast::tanh(x);
  else if constexpr (fn == sigmoid) return fast::sigmoid(x);
  else if constexpr (fn == erf) return fast::erf(x);
  else if constexpr (fn == gelu_tanh) return fast::gelu_tanh(x);
  else if constexpr (fn == gelu_erf) return fast::gelu_erf(x);
  else if constexpr (fn == silu) return fast::silu(x);
  else if constexpr (fn == softplus) return fast::softplus(alpha * x) / alpha;
  else if constexpr (fn == elu) { const float y = alpha * fast::expm1(x); return x > 0 ? x : y; }
  else if constexpr (fn == sin) return static_cast<float>(fast::sincos(x).sin);
  else if constexpr (fn == cos) return static_cast<float>(fast::sincos(x).cos);
  else if constexpr (fn == tan) { const fast::SinCos t = fast::sincos(x); return static_cast<float>(t.sin / t.cos); }
  else return scalar::apply_unary(fn, x, alpha);
}

template <UnaryFn fn>
FERRITE_INLINE double apply(double x, double alpha) {
  return scalar::apply_unary(fn, x, alpha);
}

template <UnaryFn fn>
FERRITE_INLINE std::int64_t apply(std::int64_t x, std::int64_t) {
  return scalar::apply_unary(fn, x);
}

/// dy f'(saved), by the rules of op::UnaryBackward's composition: where the derivative chooses, so does the result,
/// and a dy of infinity times a slope of 0 is 0.
template <UnaryFn fn, class T>
FERRITE_INLINE T apply_backward(T s, T dy, T alpha) {
  using enum UnaryFn;
  constexpr bool fast_float = std::is_same_v<T, float>;
  if constexpr (fn == relu) return s > 0 ? dy : T{0};
  else if constexpr (fn == leaky_relu) return s > 0 ? dy : dy * alpha;
  else if constexpr (fn == abs) return dy * apply<sign>(s, alpha);
  // dy first: the slope alone may leave the range where the product does not.
  else if constexpr (fn == rsqrt) return dy * T(-0.5) * s * s * s;
  else if constexpr (fn == reciprocal) return -(dy * s * s);
  else if constexpr (fn == square) return dy * s * 2;
  else if constexpr (fn == log) return dy / s;
  else if constexpr (fn == log1p) return dy / (s + 1);
  else if constexpr (fn == elu) {
    T e;
    if constexpr (fast_float) e = fast::exp(s); else e = std::exp(s);
    return s > 0 ? dy : dy * e * alpha;
  }
  else if constexpr (!fast_float) return dy * scalar::apply_unary_derivative(fn, s, alpha);
  else if constexpr (fn == sin) return dy * static_cast<float>(fast::sincos(s).cos);
  else if constexpr (fn == cos) return -(dy * static_cast<float>(fast::sincos(s).sin));
  else if constexpr (fn == erf) return dy * fast::erf_derivative(s);
  else if constexpr (fn == gelu_tanh) return dy * fast::gelu_tanh_derivative(s);
  else if constexpr (fn == gelu_erf) return dy * fast::gelu_erf_derivative(s);
  else if constexpr (fn == silu) return dy * fast::silu_derivative(s);
  else if constexpr (fn == softplus) return dy * fast::sigmoid(s * alpha);
  else return dy * scalar::apply_unary_derivative(fn, s, alpha);
}

// clang-format on

}  // namespace ferrite::cpu
