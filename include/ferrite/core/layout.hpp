// Layout: the arrangement of a shape in a buffer. Every view is a function from Layout to Layout.
#pragma once

#include <optional>
#include <span>

#include "ferrite/core/shape.hpp"

namespace ferrite {

/// Strides and offset count elements. Strides may be 0 (broadcast) or negative (flip).
struct FERRITE_API Layout {
  Shape shape;
  Shape strides;
  std::int64_t offset = 0;

  static Layout contiguous(const Shape& shape);
  bool is_contiguous() const;
  /// True if two indices share an element (stride 0 on an axis longer than 1, or windows).
  bool may_overlap() const;

  Layout permute(const Shape& order) const;
  /// Elements start, start+step, ... of `axis`, `count` of them. step may be negative.
  Layout slice(int axis, std::int64_t start, std::int64_t count, std::int64_t step) const;
  Layout expand(const Shape& target) const;
  Layout flip(int axis) const;
  /// Sliding windows along `axis`: the extent becomes (n - size) / step + 1, a last axis of `size` is added.
  Layout windows(int axis, std::int64_t size, std::int64_t step) const;
  /// The same elements under another shape, or nothing if that needs a copy.
  std::optional<Layout> reshape(const Shape& target) const;
};

/// A loop nest over several operands of one shape: unit axes dropped, neighbouring axes merged if every
/// operand allows it, longest-stride axes first. Kernels see only this.
struct FERRITE_API LoopNest {
  static constexpr int max_operands = 6;
  int rank = 0;
  int operands = 0;
  std::int64_t extent[max_rank] = {};
  std::int64_t stride[max_operands][max_rank] = {};

  /// All layouts must have the same shape (broadcast first). Rank 0 becomes one axis of extent 1.
  explicit LoopNest(std::span<const Layout* const> layouts);

  std::int64_t numel() const;
  /// Product of all extents but the last.
  std::int64_t outer() const;
};

}  // namespace ferrite
