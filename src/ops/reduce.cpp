// Shape rules of reductions along axes: reduce, argreduce, scan, statistic, sort, softmax.
#include "ferrite/ops/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/ops/argreduce.hpp"
#include "ferrite/ops/scan.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite::op {

namespace {
double axis_length(std::string_view op, int axis, const Meta& meta) {
  return static_cast<double>(meta.shape[normalize_axis(op, axis, meta.shape.rank())]);
}

Metas along_axis(std::string_view op, int axis, MetaSpan in) {
  detail::check_arity(op, in.size(), 1, 1);
  normalize_axis(op, axis, in[0].shape.rank());
  detail::check_floating(op, "x", in[0].dtype);
  return {in[0]};
}

Metas along_axis_backward(std::string_view op, int axis, MetaSpan in) {
  detail::check_arity(op, in.size(), 2, 2);
  normalize_axis(op, axis, in[0].shape.rank());
  detail::check_floating(op, "y", in[0].dtype);
  detail::check_floating(op, "gradient", in[1].dtype);
  detail::check_shape(op, "gradient", in[1].shape, in[0].shape);
  return {in[0]};
}

Cost row_cost(MetaSpan in, MetaSpan out) {
  return {12.0 * static_cast<double>(in[0].shape.numel()),
          static_cast<double>(in[0].bytes() + out[0].bytes())};
}
}  // namespace

std::string_view to_string(ReduceFn fn) {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "any", "all"};
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
  DType dtype = in[0].dtype;
  if (fn == ReduceFn::sum || fn == ReduceFn::prod) dtype = sum_result(dtype);
  if (fn == ReduceFn::any || fn == ReduceFn::all) dtype = DType::bool_;
  const Shape shape = reduced_shape(in[0].shape, all, keepdim);
  if ((fn == ReduceFn::max || fn == ReduceFn::min) && reduced_count(in[0].shape, all) == 0 &&
      shape.numel() > 0)
    throw ShapeError(fmt::format("[{}] {} over axes {}: no elements to choose from", name(),
                                 ferrite::to_string(in[0].shape), ferrite::to_string(all)));
  return {Meta{shape, dtype}};
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

std::string_view to_string(ArgReduceFn fn) { return fn == ArgReduceFn::argmax ? "argmax" : "argmin"; }

Metas ArgReduce::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  const int a = normalize_axis(name(), axis, in[0].shape.rank());
  if (in[0].shape[a] == 0)
    throw ShapeError(fmt::format("[{}] axis {} of {}: no elements to choose from", name(), a,
                                 ferrite::to_string(in[0].shape)));
  return {Meta{reduced_shape(in[0].shape, {a}, keepdim), DType::i64}};
}

Metas Scan::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  normalize_axis(name(), axis, in[0].shape.rank());
  return {Meta{in[0].shape, sum_result(in[0].dtype)}};
}

double Scan::reduction_length(MetaSpan in) const { return axis_length(name(), axis, in[0]); }

std::string_view to_string(StatisticFn fn) {
  constexpr std::string_view names[] = {"mean", "var", "logsumexp", "norm"};
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

Metas Softmax::infer(MetaSpan in) const { return along_axis(type_name, axis, in); }
Cost Softmax::cost(MetaSpan in, MetaSpan out) const { return row_cost(in, out); }
double Softmax::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }
Metas SoftmaxBackward::infer(MetaSpan in) const { return along_axis_backward(type_name, axis, in); }
double SoftmaxBackward::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }
Metas LogSoftmax::infer(MetaSpan in) const { return along_axis(type_name, axis, in); }
Cost LogSoftmax::cost(MetaSpan in, MetaSpan out) const { return row_cost(in, out); }
double LogSoftmax::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }
Metas LogSoftmaxBackward::infer(MetaSpan in) const { return along_axis_backward(type_name, axis, in); }
double LogSoftmaxBackward::reduction_length(MetaSpan in) const { return axis_length(type_name, axis, in[0]); }

}  // namespace ferrite::op
