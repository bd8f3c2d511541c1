// reduce: names, shape rule, cost.
#include "ferrite/ops/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ferrite::op {

std::string_view to_string(ReduceFn fn) {
  static constexpr std::string_view names[] = {"sum", "prod", "max", "min", "any", "all"};
  return names[static_cast<int>(fn)];
}

Shape reduced_shape(const Shape& shape, const Shape& axes, bool keepdim) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool dropped = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!dropped)
      result.push_back(shape[i]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

std::int64_t reduced_count(const Shape& shape, const Shape& axes) {
  std::int64_t count = 1;
  for (std::int64_t axis : axes) count *= shape[static_cast<int>(axis)];
  return count;
}

Metas Reduce::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  const Shape all = normalize_axes(name(), axes, in[0].shape.rank());
  DType result = in[0].dtype;
  if (fn == ReduceFn::sum || fn == ReduceFn::prod) result = sum_result(result);
  if (fn == ReduceFn::any || fn == ReduceFn::all) result = DType::bool_;
  if (at_least && fn != ReduceFn::sum)
    throw DTypeError(
        fmt::format("[{}] at_least {}: only sums have a choice", name(), ferrite::to_string(*at_least)));
  if (fn == ReduceFn::sum) result = detail::sum_dtype(name(), result, at_least);
  const Shape shape = reduced_shape(in[0].shape, all, keepdim);
  if ((fn == ReduceFn::max || fn == ReduceFn::min) && reduced_count(in[0].shape, all) == 0 &&
      shape.numel() > 0)
    throw ShapeError(fmt::format("[{}] {} over axes {}: no elements to choose from", name(),
                                 ferrite::to_string(in[0].shape), ferrite::to_string(all)));
  return {Meta{shape, result}};
}

Cost Reduce::cost(MetaSpan in, MetaSpan out) const {
  return {static_cast<double>(in[0].shape.numel()), static_cast<double>(in[0].bytes() + out[0].bytes())};
}

double Reduce::reduction_length(MetaSpan in) const {
  if (fn != ReduceFn::sum && fn != ReduceFn::prod) return 1;
  return static_cast<double>(reduced_count(in[0].shape, normalize_axes(name(), axes, in[0].shape.rank())));
}

Saves Reduce::saves() const {
  if (fn == ReduceFn::prod) return {.inputs = {0}};
  if (fn == ReduceFn::max || fn == ReduceFn::min) return {.inputs = {0}, .outputs = {0}};
  return {};
}

}  // namespace ferrite::op
