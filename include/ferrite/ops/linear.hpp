// linear: x W^T + b with an activation or a residual in the epilogue. f16 and bf16 accumulate in f32.
#pragma once

#include "ferrite/ops/activation_backward.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {

/// The activation that follows in the same op; gelu is the tanh form.
enum class Activation : std::uint8_t { none, relu, gelu, silu, tanh, sigmoid };
constexpr int count_of(Activation) { return static_cast<int>(Activation::sigmoid) + 1; }

namespace op {

FERRITE_API std::string_view to_string(Activation activation);
/// The unary function behind an activation (gelu is the tanh form).
FERRITE_API Unary activation_op(Activation activation);

/// # Shapes: x [N, I], weight [O, I], bias [O] (optional), residual [N, O] (optional) -> y [N, O]; with gelu
/// and silu also the pre-activation [N, O], from which they are differentiated (the others use y).
/// A residual is added: x W^T + b + residual, in f16 rounded once. It needs Activation::none.
struct FERRITE_API Linear {
  static constexpr LibraryName type_name = "linear";
  static constexpr Positions lowered = {0, 1, 2, 3};
  Activation activation = Activation::none;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{4, 3}, d}, {{4}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("activation", self.activation); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    // The sums stay wide on a backend that rounds the operands (Autocast): they are rounded once.
    const DType terms = promote(in[0].dtype(), in[1].dtype());
    const Matmul product{is_floating(terms) ? std::optional(terms) : std::nullopt};
    Tensor<B> pre = eval(product, in[0], transpose(in[1], 0, 1));
    for (std::size_t i = 2; i < in.size(); ++i) pre = pre + in[i];  // bias, residual
    if (activation == Activation::none) return {pre};
    const Tensor<B> y = eval(activation_op(activation), pre);
    return keeps_pre_activation() ? Tensors<B>{y, pre} : Tensors<B>{y};
  }
  bool keeps_pre_activation() const;
  /// The positions of the optional inputs, which their ranks tell apart; no_input for one that is not there.
  static constexpr std::size_t no_input = static_cast<std::size_t>(-1);
  static std::size_t bias_input(MetaSpan in);
  static std::size_t residual_input(MetaSpan in);
  Saves saves() const;
  template <class B>
  void vjp(Vjp<B>& v) const {
    Tensor<B> d = v.grad();
    Metas metas;
    for (std::size_t i = 0; i < v.input_count(); ++i) metas.push_back(v.input_meta(i));
    const std::size_t bias = bias_input(metas);
    const bool has_bias = v.needs(bias);
    v.add(residual_input(metas), d);
    if (activation != Activation::none) {
      const Unary act = activation_op(activation);
      const Tensor<B> saved = v.output(keeps_pre_activation() ? 1 : 0);
      if (has_bias) {
        const Tensors<B> both = eval_all(ActivationBackward{act.fn, act.alpha, metas[bias].dtype}, saved, d);
        d = both[0];
        v.add(bias, both[1]);
      } else {
        d = eval(UnaryBackward{act.fn, act.alpha}, saved, d);
      }
    }
    if (v.needs(0)) v.into(0, Matmul{v.input_meta(0).dtype}, d, v.input(1));
    if (v.needs(1)) v.into(1, Matmul{v.input_meta(1).dtype}, transpose(d, 0, 1), v.input(0));
    if (has_bias && activation == Activation::none)
      v.into(bias, Reduce{ReduceFn::sum, {0}, false, metas[bias].dtype}, d);
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Linear& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Linear& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::Linear& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Linear& op, MetaSpan in);

using op::to_string;  // for argument-dependent lookup, which searches beside the enum

/// # Shapes: x [..., I], weight [O, I], bias [O] or undefined, residual [..., O] or undefined -> [..., O]
/// activation(x W^T + b) + residual. The weight decides the dtype: an x or a bias that would make the result
/// wider (f64 with a weight of f32) is a DTypeError. op::Linear promotes.
///
/// A residual of the dtype of x is added inside the product, without another pass over the result. After an
/// activation, or if it has another dtype, it is added by an op of its own.
template <class B>
Tensor<B> linear(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& bias = {},
                 Activation activation = Activation::none, const Tensor<B>& residual = {}) {
  if (x.rank() < 1 || weight.rank() != 2 || x.size(-1) != weight.size(1))
    throw ShapeError("[linear] x " + to_string(x.shape()) + " and weight " + to_string(weight.shape()) +
                     ": the weight must be [out, in] with `in` equal to x's last extent");
  detail::check_weight_decides("linear", "x", x.dtype(), weight.dtype());
  if (bias.defined()) {
    detail::check_weight_decides("linear", "bias", bias.dtype(), weight.dtype());
    detail::check_shape("linear", "bias", bias.shape(), {weight.size(0)});
  }
  const bool flat = x.rank() == 2;
  Shape shape = x.shape();
  shape[x.rank() - 1] = weight.size(0);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows *= x.shape()[i];
  if (residual.defined()) detail::check_shape("linear", "residual", residual.shape(), shape);
  const bool inside = residual.defined() && activation == Activation::none && residual.dtype() == x.dtype();
  SmallVector<Tensor<B>, 4> in{flat ? x : reshape(x, {rows, x.size(-1)}), weight};
  if (bias.defined()) in.push_back(bias);
  if (inside) in.push_back(flat ? residual : reshape(residual, {rows, weight.size(0)}));
  const Tensor<B> flat_y = eval_list(op::Linear{activation}, TensorSpan<B>(in.data(), in.size()))[0];
  const Tensor<B> y = flat ? flat_y : reshape(flat_y, shape);
  return residual.defined() && !inside ? y + residual : y;
}

}  // namespace ferrite
