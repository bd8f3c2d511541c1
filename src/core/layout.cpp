// Views as arithmetic on strides, and the collapsing of several strided operands into one loop nest.
#include "ferrite/core/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "ferrite/core/error.hpp"

namespace ferrite {

Layout Layout::contiguous(const Shape& shape) {
  Layout layout{shape, Shape::filled(shape.rank(), 1), 0};
  for (int i = shape.rank() - 2; i >= 0; --i) {
    layout.strides[i] = layout.strides[i + 1] * std::max<std::int64_t>(shape[i + 1], 1);
  }
  return layout;
}

bool Layout::is_contiguous() const {
  std::int64_t expected = 1;
  bool dense = true;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    dense = dense && strides[i] == expected;
    expected *= shape[i];
  }
  return dense;
}

bool Layout::may_overlap() const {
  // No overlap if each axis, taken from the smallest stride up, steps over everything below it.
  const Layout* const self = this;
  const LoopNest nest(std::span(&self, 1));
  std::int64_t reach = 0;
  for (int i = nest.rank - 1; i >= 0; --i) {
    if (nest.extent[i] <= 1) continue;
    const std::int64_t stride = std::abs(nest.stride[0][i]);
    if (stride <= reach) return true;
    reach += (nest.extent[i] - 1) * stride;
  }
  return false;
}

Layout Layout::permute(const Shape& order) const {
  const int rank = shape.rank();
  if (order.rank() != rank || normalize_axes("permute", order, rank).rank() != rank) {
    throw ShapeError(fmt::format("[permute] order {} for shape {}: every axis must be named once",
                                 to_string(order), to_string(shape)));
  }
  Layout result = *this;
  for (int i = 0; i < rank; ++i) {
    const int from = normalize_axis("permute", static_cast<int>(order[i]), rank);
    result.shape[i] = shape[from];
    result.strides[i] = strides[from];
  }
  return result;
}

Layout Layout::slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const {
  axis = normalize_axis("slice", axis, shape.rank());
  const std::int64_t extent = shape[axis];
  // The last index is checked by division: start + (count - 1) * step may not fit in 64 bits.
  const bool inside = count == 0 ? start >= 0 && start <= extent
                                 : count > 0 && start >= 0 && start < extent &&
                                       (count == 1 || (step <= (extent - 1 - start) / (count - 1) &&
                                                       step >= -(start / (count - 1))));
  if (!inside || step == 0) {
    throw ValueError(
        fmt::format("[slice] start {}, count {}, step {} on axis {} of shape {}: "
                    "indices must lie in [0, {}) and the step must not be 0",
                    start, count, step, axis, to_string(shape), extent));
  }
  Layout result = *this;
  if (count > 0) result.offset += start * strides[axis];
  if (count > 1) result.strides[axis] *= step;
  result.shape[axis] = count;
  return result;
}

Layout Layout::expand(const Shape& target) const {
  const int lead = target.rank() - shape.rank();
  Layout result{target, Shape::filled(target.rank(), 0), offset};
  bool fits = lead >= 0;
  for (int i = 0; fits && i < shape.rank(); ++i) {
    if (shape[i] == target[lead + i])
      result.strides[lead + i] = strides[i];
    else
      fits = shape[i] == 1 && target[lead + i] >= 0;
  }
  if (!fits) {
    throw ShapeError(
        fmt::format("[expand] shape {} to {}: every axis, counted from the last, must match or be 1",
                    to_string(shape), to_string(target)));
  }
  check_extents("expand", target);
  return result;
}

Layout Layout::flip(int axis) const {
  axis = normalize_axis("flip", axis, shape.rank());
  Layout result = *this;
  if (shape[axis] > 0) result.offset += (shape[axis] - 1) * strides[axis];
  result.strides[axis] = -strides[axis];
  return result;
}

Layout Layout::windows(int axis, std::int64_t size, std::int64_t step) const {
  axis = normalize_axis("windows", axis, shape.rank());
  const std::int64_t extent = shape[axis];
  if (size < 1 || size > extent || step < 1) {
    throw ValueError(
        fmt::format("[windows] size {} and step {} on axis {} of shape {}: the size must be in "
                    "[1, {}] and the step positive",
                    size, step, axis, to_string(shape), extent));
  }
  const std::int64_t count = (extent - size) / step + 1;
  Layout result = *this;
  result.shape[axis] = count;
  if (count > 1) result.strides[axis] *= step;
  result.shape.push_back(size);
  result.strides.push_back(strides[axis]);
  check_extents("windows", result.shape);
  return result;
}

std::optional<Layout> Layout::reshape(const Shape& target) const {
  check_extents("reshape", target);
  if (shape.numel() != target.numel()) {
    throw ShapeError(fmt::format("[reshape] shape {} to {}: {} elements cannot become {}", to_string(shape),
                                 to_string(target), shape.numel(), target.numel()));
  }
  Layout result = contiguous(target);
  result.offset = offset;
  if (target.numel() == 0 || is_contiguous()) return result;

  // Merge the axes into the fewest runs of constant stride. A view exists exactly if the target's axes,
  // taken from the last, cut each run without remainder: an axis across two runs would merge them.
  std::int64_t extents[max_rank], steps[max_rank];
  int run = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (run > 0 && steps[run - 1] == strides[i] * shape[i]) {
      extents[run - 1] *= shape[i];
    } else {
      extents[run++] = shape[i];
    }
    steps[run - 1] = strides[i];
  }
  std::int64_t left = 1, stride = 1;
  for (int i = target.rank() - 1; i >= 0; --i) {
    if (target[i] == 1) continue;
    if (left == 1) {
      left = extents[--run];
      stride = steps[run];
    }
    if (left % target[i] != 0) return std::nullopt;
    result.strides[i] = stride;
    stride *= target[i];
    left /= target[i];
  }
  return result;
}

LoopNest::LoopNest(std::span<const Layout* const> layouts) : operands(static_cast<int>(layouts.size())) {
  if (operands < 1 || operands > max_operands) {
    throw ValueError(fmt::format("[loop_nest] {} operands: must be in [1, {}]", operands, max_operands));
  }
  const Shape& shape = layouts[0]->shape;
  for (int k = 1; k < operands; ++k) {
    if (layouts[k]->shape == shape) continue;
    throw ShapeError(fmt::format("[loop_nest] shapes {} and {}: operands must be broadcast first",
                                 to_string(shape), to_string(layouts[k]->shape)));
  }

  // Axes by descending stride of the first operand, ties decided by the next ones, so that writes run through
  // memory in order. An insertion sort, because contiguous operands arrive sorted.
  int order[max_rank];
  int count = 0;
  const auto before = [&](int a, int b) {
    for (const Layout* layout : layouts) {
      const std::int64_t x = std::abs(layout->strides[a]), y = std::abs(layout->strides[b]);
      if (x != y) return x > y;
    }
    return false;
  };
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (shape[axis] == 0) {
      rank = 1;  // one empty loop; every other extent stays out of it
      return;
    }
    int at = count++;
    for (; at > 0 && before(axis, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = axis;
  }

  for (int i = 0; i < count; ++i) {
    const int axis = order[i];
    bool merges = rank > 0;
    for (int k = 0; merges && k < operands; ++k) {
      merges = stride[k][rank - 1] == layouts[k]->strides[axis] * shape[axis];
    }
    if (merges) {
      extent[rank - 1] *= shape[axis];
    } else {
      extent[rank++] = shape[axis];
    }
    for (int k = 0; k < operands; ++k) stride[k][rank - 1] = layouts[k]->strides[axis];
  }
  if (rank == 0) {
    rank = 1;
    extent[0] = 1;
    for (int k = 0; k < operands; ++k) stride[k][0] = 1;
  }
}

std::int64_t LoopNest::numel() const { return outer() * extent[rank - 1]; }

std::int64_t LoopNest::outer() const {
  std::int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= extent[i];
  return n;
}

}  // namespace ferrite
