// Shape rules of the indexing ops.
#include <fmt/format.h>

#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/scatter.hpp"
#include "ferrite/ops/scatter_add.hpp"

namespace ferrite::op {

namespace {
/// index must have x's rank and may not be longer than x on any axis but the indexed one.
void check_index(std::string_view op, int axis, const Meta& x, const Meta& index) {
  detail::check_integer(op, "index", index.dtype);
  const int a = normalize_axis(op, axis, x.shape.rank());
  bool fits = index.shape.rank() == x.shape.rank();
  for (int i = 0; fits && i < x.shape.rank(); ++i) fits = i == a || index.shape[i] <= x.shape[i];
  if (!fits)
    throw ShapeError(
        fmt::format("[{}] x {} and index {} on axis {}: the index needs x's rank and may not exceed x on the "
                    "other axes",
                    op, to_string(x.shape), to_string(index.shape), a));
}

Shape with_last(std::string_view op, Shape shape, std::int64_t extent) {
  if (shape.rank() == max_rank)
    throw ShapeError(fmt::format("[{}] ids {}: have {} axes, and the result has one more; the most is {}", op,
                                 to_string(shape), max_rank, max_rank));
  shape.push_back(extent);
  return shape;
}

Metas infer_scatter(std::string_view op, int axis, MetaSpan in) {
  detail::check_arity(op, in.size(), 3, 3);
  check_index(op, axis, in[0], in[1]);
  const Shape &index = in[1].shape, &source = in[2].shape;
  bool fits = source.rank() == index.rank();
  for (int i = 0; fits && i < index.rank(); ++i) fits = source[i] >= index[i];
  if (!fits)
    throw ShapeError(fmt::format("[{}] index {} and source {}: the source must cover the index", op,
                                 to_string(index), to_string(source)));
  if (in[0].dtype != in[2].dtype)
    throw DTypeError(fmt::format("[{}] x is {} and source {}: need one dtype", op, to_string(in[0].dtype),
                                 to_string(in[2].dtype)));
  return {in[0]};
}
}  // namespace

Metas Gather::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  check_index(type_name, axis, in[0], in[1]);
  return {Meta{in[1].shape, in[0].dtype}};
}

Metas Scatter::infer(MetaSpan in) const { return infer_scatter(type_name, axis, in); }

Metas ScatterAdd::infer(MetaSpan in) const {
  if (in.size() == 3 && in[0].dtype == DType::bool_)
    throw DTypeError("[scatter_add] x is bool: needs a number type");
  return infer_scatter(type_name, axis, in);
}

double ScatterAdd::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[1].shape[normalize_axis(type_name, axis, in[1].shape.rank())]);
}

Metas IndexSelect::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_integer(type_name, "index", in[1].dtype);
  detail::check_rank(type_name, "index", in[1].shape, 1);
  Meta result = in[0];
  result.shape[normalize_axis(type_name, axis, result.shape.rank())] = in[1].shape[0];
  return {result};
}

Metas Embedding::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_rank(type_name, "weight", in[0].shape, 2);
  detail::check_integer(type_name, "ids", in[1].dtype);
  return {Meta{with_last(type_name, in[1].shape, in[0].shape[1]), in[0].dtype}};
}

Metas EmbeddingBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  detail::check_floating(type_name, "gradient", in[0].dtype);
  detail::check_integer(type_name, "ids", in[1].dtype);
  const std::int64_t channels = in[0].shape.rank() > 0 ? in[0].shape.back() : 0;
  detail::check_shape(type_name, "gradient", in[0].shape, with_last(type_name, in[1].shape, channels));
  if (rows < 0) throw ValueError(fmt::format("[{}] rows {}: must not be negative", type_name, rows));
  return {Meta{{rows, in[0].shape.back()}, in[0].dtype}};
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

// Costs: an index picks, so what it does not pick is not read.

namespace {
double bytes_of(const Meta& m) { return static_cast<double>(m.bytes()); }

/// Every result is read once from the source and written once.
Cost pick_cost(const Meta& index, const Meta& out) {
  return {static_cast<double>(out.shape.numel()), bytes_of(index) + 2 * bytes_of(out)};
}
/// x is copied whole; what the index covers of the source is read.
Cost put_cost(MetaSpan in, const Meta& out) {
  const auto moved = static_cast<double>(in[1].shape.numel());
  return {moved, bytes_of(in[0]) + bytes_of(in[1]) + bytes_of(out) +
                     moved * static_cast<double>(size_of(in[2].dtype))};
}
}  // namespace

Cost Gather::cost(MetaSpan in, MetaSpan out) const { return pick_cost(in[1], out[0]); }
Cost IndexSelect::cost(MetaSpan in, MetaSpan out) const { return pick_cost(in[1], out[0]); }
Cost Embedding::cost(MetaSpan in, MetaSpan out) const { return pick_cost(in[1], out[0]); }
Cost Scatter::cost(MetaSpan in, MetaSpan out) const { return put_cost(in, out[0]); }
Cost ScatterAdd::cost(MetaSpan in, MetaSpan out) const { return put_cost(in, out[0]); }

}  // namespace ferrite::op
