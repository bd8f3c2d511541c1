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

Metas SoftmaxCrossEntropy::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  const Meta row = check_classes(type_name, in[0], in[1], label_smoothing, classes);
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
  const Meta row = check_classes(type_name, in[1], in[2], label_smoothing, classes);
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
  return {check_classes(type_name, in[0], in[1], label_smoothing, classes), in[0]};
}
Cost SoftmaxCrossEntropyWithGradient::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 24); }
double SoftmaxCrossEntropyWithGradient::reduction_length(MetaSpan in) const {
  return SoftmaxCrossEntropy{}.reduction_length(in);
}

Metas CrossEntropyLoss::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 2, 2);
  const Meta result{{}, check_classes(name(), in[0], in[1], label_smoothing, classes).dtype};
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
