// unary: elementwise functions of one tensor. f16 and bf16 are computed in f32 and rounded once.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

enum class UnaryFn : std::uint8_t {
  // results of the input's dtype, integers allowed
  neg,
  abs,
  sign,
  square,
  relu,
  // integers pass through unchanged
  floor,
  ceil,
  round,
  // real functions: integers are promoted by float_result
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  expm1,
  log,
  log1p,
  sin,
  cos,
  tan,
  tanh,
  sigmoid,
  erf,
  gelu_tanh,
  gelu_erf,
  silu,
  softplus,
  elu,
  leaky_relu,
  // bool results
  logical_not,
  isnan,
  isfinite
};
inline constexpr int unary_fn_count = static_cast<int>(UnaryFn::isfinite) + 1;

FERRITE_API std::string_view to_string(UnaryFn fn);
constexpr int count_of(UnaryFn) { return unary_fn_count; }

/// alpha: slope of leaky_relu, scale of elu, sharpness of softplus; ignored by the others.
struct FERRITE_API Unary {
  static constexpr std::string_view type_name = "unary";
  UnaryFn fn = UnaryFn::neg;
  double alpha = 1;

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("alpha", self.alpha);
  }
  /// tanh, sigmoid, exp and their like differentiate from the output, the others from the input.
  bool differentiates_from_output() const;
  Saves saves() const;
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx = dy * f'(x), from x or y (see differentiates_from_output). Inputs (saved, dy).
struct FERRITE_API UnaryBackward {
  static constexpr std::string_view type_name = "unary_backward";
  UnaryFn fn = UnaryFn::neg;
  double alpha = 1;

  std::string_view name() const;
  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    fn = UnaryFn::exp;
    return detail::alike(2, {2, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("alpha", self.alpha);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const;
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Unary& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Unary& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cpu&, const op::UnaryBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::UnaryBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

// Element by element. neg, abs, sign, square and relu keep the dtype; floor, ceil and round leave integers as
// they are; logical_not, isnan and isfinite give bool; of the others integers give a floating result.
#define FERRITE_UNARY(fn)                       \
  template <class B>                            \
  Tensor<B> fn(const Tensor<B>& x) {            \
    return eval(op::Unary{op::UnaryFn::fn}, x); \
  }
FERRITE_UNARY(neg)
FERRITE_UNARY(abs)
FERRITE_UNARY(sign)
FERRITE_UNARY(square)
FERRITE_UNARY(relu)
FERRITE_UNARY(floor)
FERRITE_UNARY(ceil)
FERRITE_UNARY(round)  // half to even, as NumPy
FERRITE_UNARY(sqrt)
FERRITE_UNARY(rsqrt)
FERRITE_UNARY(reciprocal)
FERRITE_UNARY(exp)
FERRITE_UNARY(expm1)
FERRITE_UNARY(log)
FERRITE_UNARY(log1p)
FERRITE_UNARY(sin)
FERRITE_UNARY(cos)
FERRITE_UNARY(tan)
FERRITE_UNARY(tanh)
FERRITE_UNARY(sigmoid)
FERRITE_UNARY(erf)
FERRITE_UNARY(silu)
FERRITE_UNARY(logical_not)
FERRITE_UNARY(isnan)
FERRITE_UNARY(isfinite)
#undef FERRITE_UNARY

/// The tanh approximation, or exactly by erf.
enum class Gelu : std::uint8_t { tanh, erf };
/// x * Phi(x): by the tanh approximation of GPT-2 (default) or exactly.
template <class B>
Tensor<B> gelu(const Tensor<B>& x, Gelu form = Gelu::tanh) {
  return eval(op::Unary{form == Gelu::tanh ? op::UnaryFn::gelu_tanh : op::UnaryFn::gelu_erf}, x);
}
/// log(1 + exp(beta x)) / beta, without overflow.
template <class B>
Tensor<B> softplus(const Tensor<B>& x, double beta = 1) {
  return eval(op::Unary{op::UnaryFn::softplus, beta}, x);
}
/// x where x > 0, alpha (exp(x) - 1) elsewhere.
template <class B>
Tensor<B> elu(const Tensor<B>& x, double alpha = 1) {
  return eval(op::Unary{op::UnaryFn::elu, alpha}, x);
}
/// x where x > 0, slope x elsewhere.
template <class B>
Tensor<B> leaky_relu(const Tensor<B>& x, double slope = 0.01) {
  return eval(op::Unary{op::UnaryFn::leaky_relu, slope}, x);
}
template <class B>
Tensor<B> operator-(const Tensor<B>& x) {
  return neg(x);
}

// Gradients.
namespace op {

template <class B>
void Unary::vjp(Vjp<B>& v) const {
  switch (fn) {
    case UnaryFn::neg:
      return v.into(0, Unary{UnaryFn::neg}, v.grad());
    case UnaryFn::sign:
    case UnaryFn::floor:
    case UnaryFn::ceil:
    case UnaryFn::round:
      return v.add(0, zeros_like(v.grad()));
    default:
      return v.into(0, UnaryBackward{fn, alpha}, differentiates_from_output() ? v.output(0) : v.input(0),
                    v.grad());
  }
}

template <class B>
Tensors<B> UnaryBackward::compose(B&, TensorSpan<B> in) const {
  const Tensor<B>& s = in[0];  // x, or y where the derivative is simpler in y
  const Tensor<B>& dy = in[1];
  // Beyond these bounds the derivative is 0 or 1; powers of s itself would overflow, and infinity times 0 is
  // NaN.
  const auto within = [&](double bound) { return clamp(s, -bound, bound); };
  switch (fn) {
    case UnaryFn::abs:
      return {dy * sign(s)};
    case UnaryFn::square:
      return {dy * s * 2};
    case UnaryFn::relu:
      return {where(s > 0, dy, 0)};
    case UnaryFn::sqrt:
      return {dy * 0.5 / s};
    case UnaryFn::rsqrt:
      return {dy * -0.5 * s * s * s};
    case UnaryFn::reciprocal:
      return {-(dy * s * s)};
    case UnaryFn::exp:
      return {dy * s};
    case UnaryFn::expm1:
      return {dy * (s + 1)};
    case UnaryFn::log:
      return {dy / s};
    case UnaryFn::log1p:
      return {dy / (s + 1)};
    case UnaryFn::sin:
      return {dy * cos(s)};
    case UnaryFn::cos:
      return {-(dy * sin(s))};
    case UnaryFn::tan:
      return {dy * (s * s + 1)};
    case UnaryFn::tanh:
      return {dy * (1 - s * s)};
    case UnaryFn::sigmoid:
      return {dy * s * (1 - s)};
    case UnaryFn::erf:
      return {dy * exp(-(s * s)) * 1.1283791670955126};  // 2 / sqrt(pi)
    case UnaryFn::gelu_tanh: {
      // x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the tanh form cancels for negative x.
      const Tensor<B> x = within(30), g = sigmoid((x + x * x * x * 0.044715) * 1.5957691216057308);
      return {dy * (g + x * g * (1 - g) * (x * x * (3 * 0.044715) + 1) * 1.5957691216057308)};
    }
    case UnaryFn::gelu_erf: {
      const Tensor<B> x = within(40), cdf = (erf(x * 0.7071067811865476) + 1) * 0.5;
      const Tensor<B> pdf = exp(x * x * -0.5) * 0.3989422804014327;
      return {dy * (cdf + x * pdf)};
    }
    case UnaryFn::silu: {
      const Tensor<B> x = within(800), g = sigmoid(x);
      return {dy * (g * (x * (1 - g) + 1))};
    }
    case UnaryFn::softplus:
      return {dy * sigmoid(s * alpha)};
    case UnaryFn::elu:
      return {where(s > 0, dy, dy * exp(minimum(s, 0)) * alpha)};
    case UnaryFn::leaky_relu:
      return {where(s > 0, dy, dy * alpha)};
    default:
      throw GradientError("[" + std::string(to_string(fn)) + "] has no derivative");
  }
}

}  // namespace op
}  // namespace ferrite
