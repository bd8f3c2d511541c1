// gated_activation: f(gate) * up, the gate of feed-forward layers (Shazeer, 2020): SwiGLU with silu, GEGLU
// with gelu.
#pragma once

#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace op {

/// # Shapes: gate, up of one shape and dtype -> y like them
/// y = f(gate) up. With Activation::none, f(gate) = gate.
struct FERRITE_API GatedActivation {
  static constexpr LibraryName type_name = "gated_activation";
  Activation activation = Activation::silu;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(2, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) { visit("activation", self.activation); }

  /// f(gate)
  template <class B>
  Tensor<B> activated(const Tensor<B>& gate) const {
    return activation == Activation::none ? gate : eval(activation_op(activation), gate);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {activated(in[0]) * in[1]};
  }
  Saves saves() const { return {.inputs = {0, 1}}; }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (dy, gate, up) -> dgate, dup.
struct FERRITE_API GatedActivationBackward {
  static constexpr LibraryName type_name = "gated_activation_backward";
  Activation activation = Activation::silu;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(3, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) { visit("activation", self.activation); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>&dy = in[0], &gate = in[1], &up = in[2];
    const Tensor<B> y = GatedActivation{activation}.activated(gate), d = dy * up;
    if (activation == Activation::none) return {d, dy * y};
    const Unary f = activation_op(activation);
    const Tensor<B>& saved = f.differentiates_from_output() ? y : gate;
    return {eval(UnaryBackward{f.fn, f.alpha}, saved, d), dy * y};
  }
};

template <class B>
void GatedActivation::vjp(Vjp<B>& v) const {
  v.into_all({0, 1}, GatedActivationBackward{activation}, v.grad(), v.input(0), v.input(1));
}

}  // namespace op

// Kernels (backend/concept.hpp): of silu and gelu, with inputs of one dtype.
FERRITE_API void run(Cpu&, const op::GatedActivation& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::GatedActivation& op, Ins in, Outs out);
FERRITE_API bool accepts(const Cpu&, const op::GatedActivation& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::GatedActivation& op, MetaSpan in);
FERRITE_API void run(Cpu&, const op::GatedActivationBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::GatedActivationBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API bool accepts(const Cpu&, const op::GatedActivationBackward& op, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::GatedActivationBackward& op, MetaSpan in);

/// activation(gate) * up, in one pass; silu makes it SwiGLU. # Shapes: gate, up of one shape -> the same
template <class B>
Tensor<B> gated_activation(const Tensor<B>& gate, const Tensor<B>& up,
                           Activation activation = Activation::silu) {
  return eval(op::GatedActivation{activation}, gate, up);
}

}  // namespace ferrite
