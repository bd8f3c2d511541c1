// Views: the same buffer under another layout. No backend runs them; an elementwise kernel sees strides.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// One extent of the shape may be -1: it is inferred. Copies only if no strides can express the result.
struct FERRITE_API Reshape {
  static constexpr LibraryName type_name = "reshape";
  Shape shape;

  Metas infer(MetaSpan in) const;
  std::optional<Layout> view(const Layout& layout) const;
  Metas example(DType d) {
    shape = {6};
    return detail::alike(1, {2, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) { visit("shape", self.shape); }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.add(0, reshape(v.grad(), v.input_meta(0).shape));
  }
};

struct FERRITE_API Permute {
  static constexpr LibraryName type_name = "permute";
  Shape order;

  Metas infer(MetaSpan in) const;
  std::optional<Layout> view(const Layout& layout) const;
  Shape inverse() const;
  Metas example(DType d) {
    order = {1, 0};
    return detail::alike(1, {2, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) { visit("order", self.order); }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.add(0, permute(v.grad(), inverse()));
  }
};

/// `count` elements of one axis: start, start + step, ... A negative step walks backwards.
struct FERRITE_API Slice {
  static constexpr LibraryName type_name = "slice";
  int axis = 0;
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;

  Metas infer(MetaSpan in) const;
  std::optional<Layout> view(const Layout& layout) const;
  static void attributes(auto& self, auto&& visit) {
    visit("axis", self.axis);
    visit("start", self.start);
    visit("count", self.count);
    visit("step", self.step);
  }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

struct FERRITE_API Expand {
  static constexpr LibraryName type_name = "expand";
  Shape shape;

  Metas infer(MetaSpan in) const;
  std::optional<Layout> view(const Layout& layout) const;
  Metas example(DType d) {
    shape = {2, 3};
    return detail::alike(1, {1, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) { visit("shape", self.shape); }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.add(0, sum_to(v.grad(), v.input_meta(0).shape));
  }
};

/// Sliding windows along `axis`; the window's elements become a new last axis.
struct FERRITE_API Windows {
  static constexpr LibraryName type_name = "windows";
  int axis = 0;
  std::int64_t size = 1;
  std::int64_t step = 1;
  std::int64_t dilation = 1;

  Metas infer(MetaSpan in) const;
  std::optional<Layout> view(const Layout& layout) const;
  static void attributes(auto& self, auto&& visit) {
    visit("axis", self.axis);
    visit("size", self.size);
    visit("step", self.step);
    visit("dilation", self.dilation);
  }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// The transpose of Windows: out[i] is the sum of all window elements that showed x[i].
/// # Shapes: [..., windows, ..., size] -> [..., length, ...]
struct FERRITE_API Fold {
  static constexpr LibraryName type_name = "fold";
  int axis = 0;
  std::int64_t length = 0;
  std::int64_t step = 1;
  std::int64_t dilation = 1;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    length = 2;
    return detail::alike(1, {2, 1}, d);
  }
  static void attributes(auto& self, auto&& visit) {
    visit("axis", self.axis);
    visit("length", self.length);
    visit("step", self.step);
    visit("dilation", self.dilation);
  }
  template <class B>
  void assemble(B& b, Ins in, Outs out) const;
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Shape& shape = v.input_meta(0).shape;
    const int a = normalize_axis(type_name, axis, shape.rank() - 1);
    // A length beyond the last window has room for more windows than there were.
    v.add(0, eval(Slice{a, 0, shape[a], 1}, eval(Windows{a, shape.back(), step, dilation}, v.grad())));
  }
};

/// Resolves [start, stop) with step against an extent, as Python slices do: negative bounds count from the
/// end, bounds beyond the ends are clipped. `stop` absent means to the end in the direction of the step.
FERRITE_API Slice resolve_slice(int axis, std::int64_t extent, std::optional<std::int64_t> start,
                                std::optional<std::int64_t> stop, std::int64_t step);

}  // namespace op

/// The same elements in row-major order under another shape. One extent may be -1: it is inferred. Copies
/// only if no strides can express the result.
template <class B>
Tensor<B> reshape(const Tensor<B>& x, const Shape& shape) {
  return eval(op::Reshape{shape}, x);
}
/// Merges axes first..last (inclusive) into one. ShapeError if `last` comes before `first`.
template <class B>
Tensor<B> flatten(const Tensor<B>& x, int first = 0, int last = -1) {
  if (x.rank() == 0) return reshape(x, {1});
  first = normalize_axis("flatten", first, x.rank());
  last = normalize_axis("flatten", last, x.rank());
  if (last < first)
    throw ShapeError("[flatten] axes " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                     to_string(x.shape()) + ": the last comes before the first");
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i > first && i <= last)
      shape[shape.rank() - 1] *= x.shape()[i];
    else
      shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}
/// Removes the given axes, or all axes of extent 1. A named axis of another extent is a ShapeError.
template <class B>
Tensor<B> squeeze(const Tensor<B>& x, const Shape& axes = {}) {
  Shape shape;
  const Shape drop = axes.empty() ? Shape{} : normalize_axes("squeeze", axes, x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    const bool named = std::find(drop.begin(), drop.end(), i) != drop.end();
    if (named && x.shape()[i] != 1)
      throw ShapeError("[squeeze] axis " + std::to_string(i) + " of " + to_string(x.shape()) +
                       ": only axes of extent 1 can be squeezed");
    if (!(named || (axes.empty() && x.shape()[i] == 1))) shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}
/// Inserts an axis of extent 1 before position `axis` (-1 appends).
template <class B>
Tensor<B> unsqueeze(const Tensor<B>& x, int axis) {
  return detail::run_parts("unsqueeze", [&] {
    Shape shape = x.shape();
    shape.insert(normalize_axis("unsqueeze", axis, x.rank() + 1), 1);
    return reshape(x, shape);
  });
}
/// Axis i of the result is axis order[i] of x. # Shapes: order has x's rank, each axis once.
template <class B>
Tensor<B> permute(const Tensor<B>& x, const Shape& order) {
  return eval(op::Permute{order}, x);
}
/// Swaps two axes.
template <class B>
Tensor<B> transpose(const Tensor<B>& x, int a, int b) {
  Shape order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  a = normalize_axis("transpose", a, x.rank());
  b = normalize_axis("transpose", b, x.rank());
  std::swap(order[a], order[b]);
  return permute(x, order);
}
/// x[start:stop:step] along one axis, with Python's rules for negative and missing bounds.
template <class B>
Tensor<B> slice(const Tensor<B>& x, int axis, std::optional<std::int64_t> start,
                std::optional<std::int64_t> stop = std::nullopt, std::int64_t step = 1) {
  axis = normalize_axis("slice", axis, x.rank());
  return eval(op::resolve_slice(axis, x.shape()[axis], start, stop, step), x);
}
namespace detail {
/// select, under the name of the function that was called.
template <class B>
Tensor<B> select_place(std::string_view function, const Tensor<B>& x, int axis, std::int64_t index) {
  axis = normalize_axis(function, axis, x.rank());
  const std::int64_t n = x.shape()[axis];
  if (index < -n || index >= n)
    throw ValueError("[" + std::string(function) + "] index " + std::to_string(index) +
                     " is out of range for axis " + std::to_string(axis) + " of length " + std::to_string(n));
  return squeeze(eval(op::Slice{axis, index < 0 ? index + n : index, 1, 1}, x), {axis});
}
}  // namespace detail
/// x[index] along one axis; the axis is dropped.
template <class B>
Tensor<B> select(const Tensor<B>& x, int axis, std::int64_t index) {
  return detail::select_place("select", x, axis, index);
}
/// x broadcast to a shape: axes of extent 1, and axes added in front, repeat without a copy.
template <class B>
Tensor<B> expand(const Tensor<B>& x, const Shape& shape) {
  return x.shape() == shape ? x : eval(op::Expand{shape}, x);
}
/// Reverses the given axes, or all axes if none is given.
template <class B>
Tensor<B> flip(const Tensor<B>& x, const Shape& axes = {}) {
  Tensor<B> y = x;
  for (std::int64_t axis : normalize_axes("flip", axes, x.rank()))
    y = slice(y, static_cast<int>(axis), std::nullopt, std::nullopt, -1);
  return y;
}
/// # Shapes: [..., n, ...] -> [..., (n - (size - 1) dilation - 1) / step + 1, ..., size]
template <class B>
Tensor<B> windows(const Tensor<B>& x, int axis, std::int64_t size, std::int64_t step = 1,
                  std::int64_t dilation = 1) {
  return eval(op::Windows{axis, size, step, dilation}, x);
}
/// Pieces of the given lengths; they must add up to the extent.
template <class B>
std::vector<Tensor<B>> split(const Tensor<B>& x, const std::vector<std::int64_t>& lengths, int axis = 0) {
  axis = normalize_axis("split", axis, x.rank());
  std::int64_t total = 0;
  for (std::int64_t n : lengths) {
    detail::check_attribute("split", "length", static_cast<double>(n), n >= 0, "must not be negative");
    total += n;
  }
  if (total != x.shape()[axis])
    throw ShapeError("[split] lengths add up to " + std::to_string(total) + " but axis " +
                     std::to_string(axis) + " of " + to_string(x.shape()) + " has " +
                     std::to_string(x.shape()[axis]));
  std::vector<Tensor<B>> pieces;
  std::int64_t start = 0;
  for (std::int64_t n : lengths) {
    pieces.push_back(eval(op::Slice{axis, start, n, 1}, x));
    start += n;
  }
  return pieces;
}
/// Up to `count` pieces of equal length, rounded up; the last one is shorter if it does not divide.
template <class B>
std::vector<Tensor<B>> chunk(const Tensor<B>& x, std::int64_t count, int axis = 0) {
  if (count < 1) throw ValueError("[chunk] count " + std::to_string(count) + ": must be at least 1");
  axis = normalize_axis("chunk", axis, x.rank());
  const std::int64_t n = x.shape()[axis], each = (n + count - 1) / count;
  std::vector<std::int64_t> lengths;
  for (std::int64_t at = 0; at < n; at += each) lengths.push_back(std::min(each, n - at));
  if (n == 0) lengths.push_back(0);
  return split(x, lengths, axis);
}
/// x repeated `counts[i]` times along axis i. # Shapes: counts has x's rank.
template <class B>
Tensor<B> repeat(const Tensor<B>& x, const Shape& counts) {
  detail::check_rank("repeat", "counts", counts, x.rank());
  for (std::int64_t n : counts)
    detail::check_attribute("repeat", "count", static_cast<double>(n), n >= 0, "must not be negative");
  return detail::run_parts("repeat", [&] {
    Tensor<B> y = x;
    for (int i = 0; i < x.rank(); ++i) {
      if (counts[i] == 1) continue;
      Shape wide = y.shape(), merged = y.shape();
      wide.insert(i, counts[i]);
      y = expand(unsqueeze(y, i), wide);
      merged[i] *= counts[i];
      y = reshape(y, merged);
    }
    return y;
  });
}

// One axis by its number.
template <class B, AxisNumber Axis>
Tensor<B> squeeze(const Tensor<B>& x, Axis axis) {
  return squeeze(x, Shape{axis});
}
template <class B, AxisNumber Axis>
Tensor<B> flip(const Tensor<B>& x, Axis axis) {
  return flip(x, Shape{axis});
}

}  // namespace ferrite
