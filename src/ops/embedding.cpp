// index_select, embedding and its gradient, one_hot: shape rules and costs.
#include "ferrite/ops/embedding.hpp"

#include <fmt/format.h>

#include "ops/index_rules.hpp"

namespace ferrite::op {

namespace {
Shape with_last(std::string_view op, Shape shape, std::int64_t extent) {
  if (shape.rank() == max_rank)
    throw ShapeError(fmt::format("[{}] ids {}: have {} axes, and the result has one more; the most is {}", op,
                                 to_string(shape), max_rank, max_rank));
  shape.push_back(extent);
  return shape;
}
}  // namespace

Metas IndexSelect::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_integer(type_name, "index", in[1].dtype);
  detail::check_rank(type_name, "index", in[1].shape, 1);
  Meta result = in[0];
  result.shape[normalize_axis(type_name, axis, result.shape.rank())] = in[1].shape[0];
  return {result};
}

Cost IndexSelect::cost(MetaSpan in, MetaSpan out) const { return pick_cost(in[1], out[0]); }

Metas Embedding::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_rank(type_name, "weight", in[0].shape, 2);
  detail::check_integer(type_name, "ids", in[1].dtype);
  return {Meta{with_last(type_name, in[1].shape, in[0].shape[1]), in[0].dtype}};
}

Cost Embedding::cost(MetaSpan in, MetaSpan out) const { return pick_cost(in[1], out[0]); }

Metas EmbeddingBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  detail::check_integer(type_name, "ids", in[1].dtype);
  const std::int64_t channels = in[0].shape.rank() > 0 ? in[0].shape.back() : 0;
  detail::check_shape(type_name, "gradient", in[0].shape, with_last(type_name, in[1].shape, channels));
  if (rows < 0) throw ValueError(fmt::format("[{}] rows {}: must not be negative", type_name, rows));
  return {Meta{{rows, in[0].shape.back()}, detail::sum_dtype(type_name, in[0].dtype, at_least)}};
}

double EmbeddingBackward::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[1].shape.numel());
}

Metas OneHot::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_integer(type_name, "ids", in[0].dtype);
  if (classes < 0) throw ValueError(fmt::format("[one_hot] classes {}: must not be negative", classes));
  return {Meta{with_last(type_name, in[0].shape, classes), dtype}};
}

}  // namespace ferrite::op
