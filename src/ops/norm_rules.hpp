// What the normalisations and the losses of classifiers have in common: statistics per row or channel.
#pragma once

#include <fmt/format.h>

#include "ops/cost.hpp"

namespace ferrite::op {

inline Shape without_last(Shape shape) {
  shape.erase(shape.rank() - 1);
  return shape;
}

/// So many operations for each element of the first output.
inline Cost streaming(MetaSpan in, MetaSpan out, double flops_per_element) {
  return cost_of(flops_per_element * static_cast<double>(out[0].shape.numel()), in, out);
}

inline void check_parameter(std::string_view op, std::string_view what, const Meta& given,
                            std::int64_t channels) {
  detail::check_floating(op, what, given.dtype);
  detail::check_shape(op, what, given.shape, {channels});
}

/// x [..., C] with something to normalise: the mean and the deviation of nothing are not numbers.
inline void check_rows(std::string_view op, const Meta& x) {
  detail::check_floating(op, "x", x.dtype);
  if (x.shape.rank() < 1)
    throw ShapeError(fmt::format("[{}] x {}: needs at least one axis", op, to_string(x.shape)));
  if (x.shape.back() == 0 && without_last(x.shape).numel() > 0)
    throw ShapeError(fmt::format("[{}] x {}: no elements per row", op, to_string(x.shape)));
}

/// One number per row or channel, as the forward gave it.
inline Meta statistic_of(const Meta& x, const Shape& shape) { return {shape, wide_dtype(x.dtype)}; }

/// logits [N, C] and targets [N]; returns what there is per row.
inline Meta check_classes(std::string_view op, const Meta& logits, const Meta& targets,
                          double label_smoothing, std::int64_t classes) {
  detail::check_rank(op, "logits", logits.shape, 2);
  detail::check_floating(op, "logits", logits.dtype);
  detail::check_integer(op, "targets", targets.dtype);
  detail::check_shape(op, "targets", targets.shape, {logits.shape[0]});
  if (logits.shape[1] == 0 && logits.shape[0] > 0)
    throw ShapeError(fmt::format("[{}] logits {}: no classes", op, to_string(logits.shape)));
  detail::check_attribute(op, "label_smoothing", label_smoothing,
                          label_smoothing >= 0 && label_smoothing <= 1, "must lie in [0, 1]");
  detail::check_attribute(op, "classes", static_cast<double>(classes),
                          classes >= 0 && classes <= logits.shape[1],
                          "must not be negative, nor more than the logits have columns");
  return statistic_of(logits, {logits.shape[0]});
}

inline void check_statistic(std::string_view op, std::string_view what, const Meta& given,
                            const Meta& needed) {
  detail::check_shape(op, what, given.shape, needed.shape);
  detail::check_dtype(op, what, given.dtype, needed.dtype);
}

inline void check_gradient(std::string_view op, const Meta& given, const Shape& shape) {
  detail::check_shape(op, "gradient", given.shape, shape);
  detail::check_floating(op, "gradient", given.dtype);
}

inline void check_eps(std::string_view op, double eps) {
  detail::check_attribute(op, "eps", eps, eps >= 0, "must not be negative");
}

}  // namespace ferrite::op
