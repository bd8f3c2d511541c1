// batch_norm: per-channel normalisation with the statistics of the batch. Statistics as in layer_norm.
#pragma once

#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// # Shapes: x [N, C, ...], weight [C], bias [C] -> y like x, mean [C], rstd [C] (biased variance)
struct FERRITE_API BatchNorm {
  static constexpr LibraryName type_name = "batch_norm";
  double eps = 1e-5;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, {{3}, d}, {{3}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("eps", self.eps); }

  /// All axes but the channels', and [C] spread so that it broadcasts against x.
  static Shape reduced_axes(int rank);
  static Shape channel_shape(const Shape& x);

  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>& x = in[0];
    const Shape axes = reduced_axes(x.rank()), spread = channel_shape(x.shape());
    const Tensor<B> mu = mean(x, axes, KeepDim::yes);
    const Tensor<B> centred = x - mu;
    const Tensor<B> rstd = rsqrt(mean(square(centred), axes, KeepDim::yes) + eps);
    const Tensor<B> y = centred * rstd * reshape(in[1], spread) + reshape(in[2], spread);
    return {y, reshape(mu, in[1].shape()), reshape(rstd, in[1].shape())};
  }
  Saves saves() const { return {.inputs = {0, 1}, .outputs = {1, 2}}; }  // x, weight; mean, rstd
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// Inputs (dy, x, weight, mean, rstd) -> dx like x, dweight [C], dbias [C].
struct FERRITE_API BatchNormBackward {
  static constexpr LibraryName type_name = "batch_norm_backward";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    return {{{2, 3}, d}, {{2, 3}, d}, {{3}, d}, detail::statistics({3}, d), detail::statistics({3}, d)};
  }
  static void attributes(auto&, auto&&) {}
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Shape axes = BatchNorm::reduced_axes(in[1].rank()),
                spread = BatchNorm::channel_shape(in[1].shape());
    const Tensor<B>& dy = in[0];
    const Tensor<B> rstd = reshape(in[4], spread), normed = (in[1] - reshape(in[3], spread)) * rstd;
    const Tensor<B> dbias = sum(dy, axes, KeepDim::yes), dweight = sum(dy * normed, axes, KeepDim::yes);
    const double per_channel = static_cast<double>(in[1].numel()) / static_cast<double>(in[2].numel());
    const Tensor<B> dx =
        (dy - (dbias + normed * dweight) * (1.0 / per_channel)) * (rstd * reshape(in[2], spread));
    return {dx, reshape(dweight, in[2].shape()), reshape(dbias, in[2].shape())};
  }
};

template <class B>
void BatchNorm::vjp(Vjp<B>& v) const {
  v.into_all({0, 1, 2}, BatchNormBackward{}, v.grad(), v.input(0), v.input(1), v.output(1), v.output(2));
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::BatchNorm& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::BatchNorm& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::BatchNormBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::BatchNormBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

/// y, and the batch's mean and rstd for running statistics: no gradient flows through these two.
template <class B>
struct BatchNormResult {
  Tensor<B> y, mean, rstd;
};

/// Training form. # Shapes: x [N, C, ...], weight [C], bias [C]
template <class B>
BatchNormResult<B> batch_norm(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& bias,
                              double eps = 1e-5) {
  auto out = eval_all(op::BatchNorm{eps}, x, weight, bias);
  return {out[0], out[1].detach(), out[2].detach()};
}
/// Evaluation form: the statistics are inputs, normally the running ones.
template <class B>
Tensor<B> batch_norm_with(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& bias,
                          const Tensor<B>& mean, const Tensor<B>& var, double eps = 1e-5) {
  const Shape spread = op::BatchNorm::channel_shape(x.shape());
  const Tensor<B> scale = weight * rsqrt(var + eps);
  return cast(x * reshape(scale, spread) + reshape(bias - mean * scale, spread), x.dtype());
}

}  // namespace ferrite
