// rms_norm: divides by the root mean square over the last axis, then scales. Statistics as in layer_norm.
#pragma once

#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// # Shapes: x [..., C], weight [C] -> y [..., C], rstd [...]
struct FERRITE_API RmsNorm {
  static constexpr LibraryName type_name = "rms_norm";
  double eps = 1e-5;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{3}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("eps", self.eps); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B> rstd = rsqrt(mean(square(in[0]), {-1}, KeepDim::yes) + eps);
    return {in[0] * rstd * in[1], squeeze(rstd, {-1})};
  }
  Saves saves() const { return {.inputs = {0, 1}, .outputs = {1}}; }  // x, weight; rstd
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (dy, x, weight, rstd) -> dx like x, dweight [C].
struct FERRITE_API RmsNormBackward {
  static constexpr LibraryName type_name = "rms_norm_backward";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{2, 3}, d}, {{3}, d}, detail::statistics({2}, d)}; }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>& dy = in[0];
    const Tensor<B> rstd = unsqueeze(in[3], -1), normed = in[1] * rstd, dn = dy * in[2];
    const Tensor<B> dx = (dn - normed * mean(dn * normed, {-1}, KeepDim::yes)) * rstd;
    return {dx, sum_to(dy * normed, in[2].shape())};
  }
};

template <class B>
void RmsNorm::vjp(Vjp<B>& v) const {
  v.into_all({0, 1}, RmsNormBackward{}, v.grad(), v.input(0), v.input(1), v.output(1));
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::RmsNorm& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::RmsNorm& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::RmsNormBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::RmsNormBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

/// # Shapes: x [..., C], weight [C] -> [..., C]
template <class B>
Tensor<B> rms_norm(const Tensor<B>& x, const Tensor<B>& weight, double eps = 1e-5) {
  return eval(op::RmsNorm{eps}, x, weight);
}

}  // namespace ferrite
