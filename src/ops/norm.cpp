// Shape rules of the normalisations and of softmax_cross_entropy.
#include <fmt/format.h>

#include <span>

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

void check_parameter(std::string_view op, std::string_view what, const Meta& given, std::int64_t channels) {
  detail::check_floating(op, what, given.dtype);
  detail::check_shape(op, what, given.shape, {channels});
}

/// x [..., C] with something to normalise: the mean and the deviation of nothing are no numbers.
void check_rows(std::string_view op, const Meta& x) {
  detail::check_floating(op, "x", x.dtype);
  if (x.shape.rank() < 1)
    throw ShapeError(fmt::format("[{}] x {}: needs at least one axis", op, to_string(x.shape)));
  if (x.shape.back() == 0 && without_last(x.shape).numel() > 0)
    throw ShapeError(fmt::format("[{}] x {}: no elements per row", op, to_string(x.shape)));
}

/// x [N, C, ...] with something to normalise.
void check_channels(std::string_view op, const Meta& x) {
  detail::check_floating(op, "x", x.dtype);
  if (x.shape.rank() < 2)
    throw ShapeError(fmt::format("[{}] x {}: needs [N, C, ...]", op, to_string(x.shape)));
  if (x.shape[1] > 0 && x.shape.numel() == 0)
    throw ShapeError(fmt::format("[{}] x {}: no elements per channel", op, to_string(x.shape)));
}

/// One number per row or channel, as the forward gave it.
Meta statistic_of(const Meta& x, const Shape& shape) { return {shape, wide_dtype(x.dtype)}; }

void check_statistic(std::string_view op, std::string_view what, const Meta& given, const Meta& needed) {
  detail::check_shape(op, what, given.shape, needed.shape);
  detail::check_dtype(op, what, given.dtype, needed.dtype);
}

void check_gradient(std::string_view op, const Meta& given, const Shape& shape) {
  detail::check_shape(op, "gradient", given.shape, shape);
  detail::check_floating(op, "gradient", given.dtype);
}

void check_eps(std::string_view op, double eps) {
  detail::check_attribute(op, "eps", eps, eps >= 0, "must not be negative");
}
}  // namespace

Metas LayerNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  check_eps(type_name, eps);
  check_rows(type_name, in[0]);
  check_parameter(type_name, "weight", in[1], in[0].shape.back());
  check_parameter(type_name, "bias", in[2], in[0].shape.back());
  const Meta row = statistic_of(in[0], without_last(in[0].shape));
  return {in[0], row, row};
}
Cost LayerNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 8); }
double LayerNorm::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

Metas LayerNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  check_rows(type_name, in[1]);
  check_gradient(type_name, in[0], in[1].shape);
  check_parameter(type_name, "weight", in[2], in[1].shape.back());
  const Meta row = statistic_of(in[1], without_last(in[1].shape));
  check_statistic(type_name, "mean", in[3], row);
  check_statistic(type_name, "rstd", in[4], row);
  return {in[1], in[2], in[2]};
}
Cost LayerNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double LayerNormBackward::reduction_length(MetaSpan in) const {
  const double channels = static_cast<double>(in[1].shape.back());
  return std::max(channels, static_cast<double>(in[1].shape.numel()) / std::max(channels, 1.0));
}

Metas RmsNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  check_eps(type_name, eps);
  check_rows(type_name, in[0]);
  check_parameter(type_name, "weight", in[1], in[0].shape.back());
  return {in[0], statistic_of(in[0], without_last(in[0].shape))};
}
Cost RmsNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 5); }
double RmsNorm::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

Metas RmsNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 4, 4);
  check_rows(type_name, in[1]);
  check_gradient(type_name, in[0], in[1].shape);
  check_parameter(type_name, "weight", in[2], in[1].shape.back());
  check_statistic(type_name, "rstd", in[3], statistic_of(in[1], without_last(in[1].shape)));
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
  check_eps(type_name, eps);
  check_channels(type_name, in[0]);
  const std::int64_t channels = in[0].shape[1];
  check_parameter(type_name, "weight", in[1], channels);
  check_parameter(type_name, "bias", in[2], channels);
  const Meta channel = statistic_of(in[0], {channels});
  return {in[0], channel, channel};
}
Cost BatchNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 8); }
double BatchNorm::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[0].shape.numel()) / std::max(1.0, static_cast<double>(in[0].shape[1]));
}

Metas BatchNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  check_channels(type_name, in[1]);
  check_gradient(type_name, in[0], in[1].shape);
  const std::int64_t channels = in[1].shape[1];
  check_parameter(type_name, "weight", in[2], channels);
  check_statistic(type_name, "mean", in[3], statistic_of(in[1], {channels}));
  check_statistic(type_name, "rstd", in[4], statistic_of(in[1], {channels}));
  return {in[1], in[2], in[2]};
}
Cost BatchNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double BatchNormBackward::reduction_length(MetaSpan in) const {
  return BatchNorm{}.reduction_length(in.subspan(1));
}

void check_targets(std::string_view op, std::span<const std::int64_t> targets, std::int64_t classes,
                   std::int64_t ignore_index) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == ignore_index || (targets[i] >= 0 && targets[i] < classes)) continue;
    throw ValueError(
        fmt::format("[{}] target {} at position {} is out of range for {} classes (ignore_index is {})", op,
                    targets[i], i, classes, ignore_index));
  }
}

namespace {
/// logits [N, C] and targets [N]; returns the meta of what there is per row.
Meta check_classes(std::string_view op, const Meta& logits, const Meta& targets, double label_smoothing) {
  detail::check_rank(op, "logits", logits.shape, 2);
  detail::check_floating(op, "logits", logits.dtype);
  detail::check_integer(op, "targets", targets.dtype);
  detail::check_shape(op, "targets", targets.shape, {logits.shape[0]});
  if (logits.shape[1] == 0 && logits.shape[0] > 0)
    throw ShapeError(fmt::format("[{}] logits {}: no classes", op, to_string(logits.shape)));
  detail::check_attribute(op, "label_smoothing", label_smoothing,
                          label_smoothing >= 0 && label_smoothing <= 1, "must lie in [0, 1]");
  return statistic_of(logits, {logits.shape[0]});
}
}  // namespace

Metas SoftmaxCrossEntropy::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  const Meta row = check_classes(type_name, in[0], in[1], label_smoothing);
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
  const Meta row = check_classes(type_name, in[1], in[2], label_smoothing);
  check_gradient(type_name, in[0], row.shape);
  check_statistic(type_name, "lse", in[3], row);
  return {in[1]};
}
Cost SoftmaxCrossEntropyBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double SoftmaxCrossEntropyBackward::reduction_length(MetaSpan) const { return 1; }

Metas SoftmaxCrossEntropyWithGradient::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  detail::check_shape(type_name, "scale", in[2].shape, {});
  detail::check_floating(type_name, "scale", in[2].dtype);
  return {check_classes(type_name, in[0], in[1], label_smoothing), in[0]};
}
Cost SoftmaxCrossEntropyWithGradient::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 24); }
double SoftmaxCrossEntropyWithGradient::reduction_length(MetaSpan in) const {
  return SoftmaxCrossEntropy{}.reduction_length(in);
}

Metas CrossEntropyLoss::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 2, 2);
  const Meta result{{}, check_classes(name(), in[0], in[1], label_smoothing).dtype};
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
