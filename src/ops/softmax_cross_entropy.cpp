// softmax_cross_entropy, its gradient, and the loss made of it: shape rules and costs.
#include "ferrite/ops/softmax_cross_entropy.hpp"

#include <fmt/format.h>

#include "ops/norm_rules.hpp"

namespace ferrite::op {

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
