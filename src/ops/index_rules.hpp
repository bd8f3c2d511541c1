// What gather, scatter, scatter_add and embedding have in common.
#pragma once

#include <fmt/format.h>

#include "ferrite/ops/op.hpp"

namespace ferrite::op {

/// index must have x's rank and may not be longer than x on any axis but the indexed one.
inline void check_index(std::string_view op, int axis, const Meta& x, const Meta& index) {
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

inline Metas infer_scatter(std::string_view op, int axis, MetaSpan in) {
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

/// The index at `position`, in row-major order of an index tensor of this shape, names no element.
[[noreturn]] inline void throw_out_of_range(std::string_view name, std::int64_t value, std::int64_t position,
                                            const Shape& shape, int axis, std::int64_t length) {
  Shape place = shape;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place[i] = position % shape[i];
    position /= shape[i];
  }
  throw ValueError(fmt::format("[{}] index {} at {} is out of range for axis {} of length {}", name, value,
                               to_string(place), axis, length));
}

// Costs: an index picks, so what it does not pick is not read.
inline double bytes_of(const Meta& m) { return static_cast<double>(m.bytes()); }

/// Every result is read once from the source and written once.
inline Cost pick_cost(const Meta& index, const Meta& out) {
  return {static_cast<double>(out.shape.numel()), bytes_of(index) + 2 * bytes_of(out)};
}

/// x is copied whole; what the index covers of the source is read.
inline Cost put_cost(MetaSpan in, const Meta& out) {
  const auto moved = static_cast<double>(in[1].shape.numel());
  return {moved, bytes_of(in[0]) + bytes_of(in[1]) + bytes_of(out) +
                     moved * static_cast<double>(size_of(in[2].dtype))};
}

}  // namespace ferrite::op
