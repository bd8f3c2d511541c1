// Shape rules of the normalisations and of softmax_cross_entropy.
#include <fmt/format.h>

#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite::op {

namespace {
Shape without_last(Shape shape) {
  shape.erase(shape.rank() - 1);
  return shape;
}

/// Reads and writes of the large tensors only; the statistics are small beside them.
Cost streaming(MetaSpan in, MetaSpan out, double flops_per_element) {
  Cost cost{flops_per_element * static_cast<double>(out[0].shape.numel()), 0};
  for (const Meta& m : in) cost.bytes += static_cast<double>(m.bytes());
  for (const Meta& m : out) cost.bytes += static_cast<double>(m.bytes());
  return cost;
}

void check_norm_inputs(std::string_view op, MetaSpan in, std::int64_t channels) {
  detail::check_floating(op, "x", in[0].dtype);
  detail::check_shape(op, "weight", in[1].shape, {channels});
  if (in.size() > 2) detail::check_shape(op, "bias", in[2].shape, {channels});
}

void check_last_axis(std::string_view op, const Shape& x) {
  if (x.rank() < 1) throw ShapeError(fmt::format("[{}] x {}: needs at least one axis", op, to_string(x)));
}
}  // namespace

Metas LayerNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  check_last_axis(type_name, in[0].shape);
  check_norm_inputs(type_name, in, in[0].shape.back());
  const Meta row{without_last(in[0].shape), statistics_dtype(in[0].dtype)};
  return {in[0], row, row};
}
Cost LayerNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 8); }
double LayerNorm::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

Metas LayerNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  detail::check_shape(type_name, "gradient", in[0].shape, in[1].shape);
  return {in[1], in[2], in[2]};
}
Cost LayerNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double LayerNormBackward::reduction_length(MetaSpan in) const {
  const double channels = static_cast<double>(in[1].shape.back());
  return std::max(channels, static_cast<double>(in[1].shape.numel()) / std::max(channels, 1.0));
}

Metas RmsNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  check_last_axis(type_name, in[0].shape);
  check_norm_inputs(type_name, in, in[0].shape.back());
  return {in[0], Meta{without_last(in[0].shape), LayerNorm::statistics_dtype(in[0].dtype)}};
}
Cost RmsNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 5); }
double RmsNorm::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

Metas RmsNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 4, 4);
  detail::check_shape(type_name, "gradient", in[0].shape, in[1].shape);
  return {in[1], in[2]};
}
Cost RmsNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 10); }
double RmsNormBackward::reduction_length(MetaSpan in) const {
  return LayerNormBackward{}.reduction_length(in);
}

Shape BatchNorm::reduced_axes(int rank) {
  Shape axes;
  for (int i = 0; i < rank; ++i)
    if (i != 1) axes.push_back(i);
  return axes;
}

Shape BatchNorm::channel_shape(const Shape& x) {
  Shape shape = Shape::filled(x.rank(), 1);
  shape[1] = x[1];
  return shape;
}

Metas BatchNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  const Shape& x = in[0].shape;
  if (x.rank() < 2) throw ShapeError(fmt::format("[batch_norm] x {}: needs [N, C, ...]", to_string(x)));
  check_norm_inputs(type_name, in, x[1]);
  if (x[1] > 0 && x.numel() == 0)
    throw ShapeError(fmt::format("[batch_norm] x {}: no elements per channel", to_string(x)));
  const Meta channel{{x[1]}, LayerNorm::statistics_dtype(in[0].dtype)};
  return {in[0], channel, channel};
}
Cost BatchNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 8); }
double BatchNorm::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape.numel()) / std::max(1.0, static_cast<double>(in[0].shape[1]));
}

Metas BatchNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  detail::check_shape(type_name, "gradient", in[0].shape, in[1].shape);
  return {in[1], in[2], in[2]};
}
Cost BatchNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double BatchNormBackward::reduction_length(MetaSpan in) const {
  return BatchNorm{}.reduction_length(in.subspan(1));
}

Metas SoftmaxCrossEntropy::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_rank(type_name, "logits", in[0].shape, 2);
  detail::check_floating(type_name, "logits", in[0].dtype);
  detail::check_integer(type_name, "targets", in[1].dtype);
  detail::check_shape(type_name, "targets", in[1].shape, {in[0].shape[0]});
  if (in[0].shape[1] == 0 && in[0].shape[0] > 0)
    throw ShapeError(fmt::format("[softmax_cross_entropy] logits {}: no classes", to_string(in[0].shape)));
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    throw ValueError(
        fmt::format("[softmax_cross_entropy] label_smoothing {}: must lie in [0, 1]", label_smoothing));
  const Meta row{{in[0].shape[0]}, LayerNorm::statistics_dtype(in[0].dtype)};
  return {row, row};
}
Cost SoftmaxCrossEntropy::cost(MetaSpan in, MetaSpan out) const {
  const Cost cost = streaming(in, out, 0);
  return {12.0 * static_cast<double>(in[0].shape.numel()), cost.bytes};
}
double SoftmaxCrossEntropy::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape[1]);
}

Metas SoftmaxCrossEntropyBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 4, 4);
  detail::check_shape(type_name, "gradient", in[0].shape, in[2].shape);
  return {in[1]};
}
Cost SoftmaxCrossEntropyBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double SoftmaxCrossEntropyBackward::reduction_length(MetaSpan) const { return 1; }

Metas SoftmaxCrossEntropyWithGradient::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  detail::check_shape(type_name, "scale", in[2].shape, {});
  detail::check_floating(type_name, "scale", in[2].dtype);
  const SoftmaxCrossEntropy loss{ignore_index, label_smoothing};
  return {loss.infer(in.first(2))[0], in[0]};
}
Cost SoftmaxCrossEntropyWithGradient::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 24); }
double SoftmaxCrossEntropyWithGradient::reduction_length(MetaSpan in) const {
  return SoftmaxCrossEntropy{}.reduction_length(in);
}

Metas CrossEntropyLoss::infer(MetaSpan in) const {
  const SoftmaxCrossEntropy loss{ignore_index, label_smoothing};
  const Meta result{{}, loss.infer(in)[0].dtype};
  if (!with_gradient) return {result};
  return {result, in[0]};
}
Cost CrossEntropyLoss::cost(MetaSpan in, MetaSpan out) const {
  const Cost cost = streaming(in, out, 0);
  return {(with_gradient ? 24.0 : 12.0) * static_cast<double>(in[0].shape.numel()), cost.bytes};
}
double CrossEntropyLoss::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape.numel());
}

}  // namespace ferrite::op
