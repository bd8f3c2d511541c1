// layer_norm: zero mean and unit variance over the last axis, then scale and shift. Statistics in f32 for
// f16, bf16 and f32, in f64 for f64.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite {
namespace op {

/// # Shapes: x [..., C], weight [C], bias [C] -> y [..., C], mean [...], rstd [...]
/// mean and rstd are f32 (f64 for f64 inputs) and are there for the backward.
struct FERRITE_API LayerNorm {
  static constexpr LibraryName type_name = "layer_norm";
  double eps = 1e-5;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{3}, d}, {{3}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("eps", self.eps); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>& x = in[0];
    const Tensor<B> mu = mean(x, {-1}, KeepDim::yes);
    const Tensor<B> centred = x - mu;
    const Tensor<B> rstd = rsqrt(mean(square(centred), {-1}, KeepDim::yes) + eps);
    return {centred * rstd * in[1] + in[2], squeeze(mu, {-1}), squeeze(rstd, {-1})};
  }
  Saves saves() const { return {.inputs = {0, 1}, .outputs = {1, 2}}; }  // x, weight; mean, rstd
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (dy, x, weight, mean, rstd) -> dx like x, dweight [C], dbias [C].
struct FERRITE_API LayerNormBackward {
  static constexpr LibraryName type_name = "layer_norm_backward";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    return {{{2, 3}, d}, {{2, 3}, d}, {{3}, d}, detail::statistics({2}, d), detail::statistics({2}, d)};
  }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>& dy = in[0];
    const Tensor<B> rstd = unsqueeze(in[4], -1), normed = (in[1] - unsqueeze(in[3], -1)) * rstd;
    const Tensor<B> dn = dy * in[2];
    const Tensor<B> dx =
        (dn - mean(dn, {-1}, KeepDim::yes) - normed * mean(dn * normed, {-1}, KeepDim::yes)) * rstd;
    const Shape channels = in[2].shape();
    return {dx, sum_to(dy * normed, channels), sum_to(dy, channels)};
  }
};

template <class B>
void LayerNorm::vjp(Vjp<B>& v) const {
  v.into_all({0, 1, 2}, LayerNormBackward{}, v.grad(), v.input(0), v.input(1), v.output(1), v.output(2));
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::LayerNorm& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::LayerNorm& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::LayerNormBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::LayerNormBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

/// # Shapes: x [..., C], weight [C], bias [C] -> [..., C]
template <class B>
Tensor<B> layer_norm(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& bias, double eps = 1e-5) {
  return eval(op::LayerNorm{eps}, x, weight, bias);
}

}  // namespace ferrite
