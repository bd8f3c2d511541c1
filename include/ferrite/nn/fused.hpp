// Layers in one op, for the few rows of a step of generation (ops/fused_linear.hpp).
#pragma once

#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/ops/fused_linear.hpp"

namespace ferrite::nn {

/// residual + activation(norm(x) W^T + bias), without the parts that are not given. `scale` is that of a
/// quantized weight.
template <class B>
struct FusedParts {
  const Norm<B>* norm = nullptr;
  Tensor<B> scale = {};
  Tensor<B> bias = {};
  Activation activation = Activation::none;
  Tensor<B> residual = {};
};

/// # Shapes: x [..., I], weight [O, I] -> [..., O]
/// x becomes of the weight's dtype, unless that is quantized. No gradients: the op has none of its own, and
/// is composed.
template <class B>
Tensor<B> fused_linear(const Tensor<B>& x, const Tensor<B>& weight, const FusedParts<B>& parts) {
  op::FusedLinear op;
  op.quantized = parts.scale.defined();
  const DType dtype = op.quantized ? x.dtype() : weight.dtype();
  const auto rows = [&](const Tensor<B>& t) {
    return cast(reshape(t, {t.numel() / t.size(-1), t.size(-1)}), dtype);
  };
  op.activation = parts.activation;
  std::vector<Tensor<B>> in = {rows(x), weight};
  if (op.quantized) in.push_back(parts.scale);
  if (parts.norm) {
    op.norm = parts.norm->bias.defined() ? RowNorm::layer : RowNorm::rms;
    op.eps = parts.norm->eps();
    in.push_back(cast(parts.norm->weight, dtype));
    if (parts.norm->bias.defined()) in.push_back(cast(parts.norm->bias, dtype));
  }
  op.bias = parts.bias.defined();
  if (op.bias) in.push_back(cast(parts.bias, dtype));
  op.residual = parts.residual.defined();
  if (op.residual) in.push_back(rows(parts.residual));
  Shape shape = x.shape();
  shape[x.rank() - 1] = weight.size(0);
  return reshape(eval_list(op, TensorSpan<B>(in))[0], shape);
}
/// The same with the weight, bias and activation of a layer.
template <class B>
Tensor<B> fused_linear(const Linear<B>& layer, const Tensor<B>& x, const Norm<B>* norm,
                       const Tensor<B>& residual = {}) {
  return fused_linear(x, layer.weight,
                      FusedParts<B>{norm, layer.scale, layer.bias, layer.activation(), residual});
}

}  // namespace ferrite::nn
