// statistic: names and shape rule.
#include "ferrite/ops/statistic.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ferrite::op {

std::string_view to_string(StatisticFn fn) {
  static constexpr std::string_view names[] = {"mean", "var", "logsumexp", "norm"};
  return names[static_cast<int>(fn)];
}

Metas Statistic::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  const Shape all = normalize_axes(name(), axes, in[0].shape.rank());
  const Shape shape = reduced_shape(in[0].shape, all, keepdim);
  const std::int64_t count = reduced_count(in[0].shape, all);
  if (fn != StatisticFn::norm && count == 0 && shape.numel() > 0)
    throw ShapeError(fmt::format("[{}] {} over axes {}: no elements", name(), ferrite::to_string(in[0].shape),
                                 ferrite::to_string(all)));
  if (fn == StatisticFn::var && static_cast<double>(count) <= parameter && shape.numel() > 0)
    throw ShapeError(fmt::format(
        "[var] {} elements with correction {}: needs more elements than the correction", count, parameter));
  detail::check_attribute(name(), "parameter", parameter, !std::isnan(parameter), "must be a number");
  if (fn == StatisticFn::norm && parameter != 1 && parameter != 2 &&
      !(std::isinf(parameter) && parameter > 0))
    throw ValueError(fmt::format("[norm] order {}: must be 1, 2 or infinity", parameter));
  return {Meta{shape, float_result(in[0].dtype)}};
}

double Statistic::reduction_length(MetaSpan in) const {
  return static_cast<double>(reduced_count(in[0].shape, normalize_axes(name(), axes, in[0].shape.rank())));
}

}  // namespace ferrite::op
