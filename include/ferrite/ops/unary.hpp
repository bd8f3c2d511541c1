// unary: elementwise functions of one tensor. f16 and bf16 are computed in f32 and rounded once.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/formulas.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

FERRITE_API std::string_view to_string(UnaryFn fn);
constexpr int count_of(UnaryFn) { return unary_fn_count; }

/// alpha: slope of leaky_relu, scale of elu, sharpness of softplus; ignored by the others.
struct FERRITE_API Unary {
  static constexpr LibraryName type_name = "unary";
  UnaryFn fn = UnaryFn::neg;
  double alpha = 1;

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("alpha", self.alpha);
  }
  /// tanh, sigmoid, exp and similar functions differentiate from the output, the others from the input.
  bool differentiates_from_output() const;
  Saves saves() const;
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx = dy * f'(x), from x or y (see differentiates_from_output). Inputs (saved, dy).
struct FERRITE_API UnaryBackward {
  static constexpr LibraryName type_name = "unary_backward";
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

// Element by element. neg, abs, sign, square and relu keep the dtype. floor, ceil and round leave integers as
// they are. logical_not, isnan and isfinite give bool. For the others, integers give a floating result.
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

/// The tanh approximation, or the exact form with erf.
enum class Gelu : std::uint8_t { tanh, erf };
/// x * Phi(x), by the tanh approximation of GPT-2 (default) or exactly.
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

/// Whole tensors in the formulas: what slopes and losses need.
struct TensorMath {
  double operator()(double value) const { return value; }
  auto let(const auto& x) const { return x; }
  auto select(const auto& condition, const auto& a, const auto& b) const { return where(condition, a, b); }
  auto within(const auto& x, double limit) const { return clamp(x, -limit, limit); }
  auto abs(const auto& x) const { return ferrite::abs(x); }
  auto sign(const auto& x) const { return ferrite::sign(x); }
  // No formula takes a positive exponent. Where elu's is not chosen it would overflow, and its gradient be
  // NaN.
  auto exp(const auto& x) const { return ferrite::exp(minimum(x, 0)); }
  auto log1p(const auto& x) const { return ferrite::log1p(x); }
  auto sin(const auto& x) const { return ferrite::sin(x); }
  auto cos(const auto& x) const { return ferrite::cos(x); }
  auto sigmoid(const auto& x) const { return ferrite::sigmoid(x); }
  auto erfc(const auto& x) const { return 1 - erf(x); }  // there is no op that keeps the small ones
};

template <class B>
Tensors<B> UnaryBackward::compose(B&, TensorSpan<B> in) const {
  return {formulas::backward(TensorMath{}, fn, in[0], in[1], alpha)};
}

}  // namespace op
}  // namespace ferrite
