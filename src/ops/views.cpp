// Layout functions and shape rules of the views, and of fold, which undoes windows.
#include "ferrite/ops/views.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/integers.hpp"

namespace ferrite::op {

namespace {
/// A view's shape rule is its layout function on a dense layout.
template <class Op>
Metas infer_view(const Op& op, MetaSpan in) {
  detail::check_arity(op_name(op), in.size(), 1, 1);
  return {Meta{op.view(Layout::contiguous(in[0].shape))->shape, in[0].dtype}};
}
/// The most negative number has no positive counterpart; one less is as far out of reach.
std::int64_t magnitude(std::int64_t step) { return step > 0 ? step : -std::max(step, -INT64_MAX); }
}  // namespace

Metas Reshape::infer(MetaSpan in) const { return infer_view(*this, in); }

std::optional<Layout> Reshape::view(const Layout& layout) const {
  Shape target = shape;
  int inferred = -1;
  std::int64_t known = 1;
  for (int i = 0; i < target.rank(); ++i) {
    if (target[i] == -1 && inferred < 0)
      inferred = i;
    else if (target[i] < 0)
      throw ShapeError(fmt::format("[reshape] {} to {}: extents must not be negative, and only one may be -1",
                                   ferrite::to_string(layout.shape), ferrite::to_string(shape)));
    else
      known = saturating_multiply_add(known, target[i], 0);
  }
  const std::int64_t count = layout.shape.numel();
  const bool fills = inferred < 0 ? known == count : known > 0 && count % known == 0;
  if (!fills)
    throw ShapeError(fmt::format("[reshape] {} to {}: {} elements cannot fill it",
                                 ferrite::to_string(layout.shape), ferrite::to_string(shape), count));
  if (inferred >= 0) target[inferred] = count / known;
  check_extents(type_name, target);
  return layout.reshape(target);
}

Metas Permute::infer(MetaSpan in) const { return infer_view(*this, in); }

std::optional<Layout> Permute::view(const Layout& layout) const {
  const int rank = layout.shape.rank();
  Shape normal;
  for (std::int64_t axis : order) normal.push_back(normalize_axis(type_name, axis, rank));
  std::array<bool, max_rank> seen{};
  for (std::int64_t axis : normal) seen[static_cast<std::size_t>(axis)] = true;
  const bool complete = normal.rank() == rank && std::count(seen.begin(), seen.end(), true) == rank;
  if (!complete)
    throw ShapeError(fmt::format("[permute] order {} for {}: needs each of the {} axes once",
                                 ferrite::to_string(order), ferrite::to_string(layout.shape), rank));
  return layout.permute(normal);
}

Shape Permute::inverse() const {
  Shape result = order;
  for (int i = 0; i < order.rank(); ++i) result[normalize_axis(type_name, order[i], order.rank())] = i;
  return result;
}

Metas Slice::infer(MetaSpan in) const { return infer_view(*this, in); }

std::optional<Layout> Slice::view(const Layout& layout) const {
  const int a = normalize_axis(type_name, axis, layout.shape.rank());
  const std::int64_t n = layout.shape[a];
  // Whether the last element lies inside, asked in a way that cannot overflow.
  const auto last_is_inside = [&] {
    if (start < 0 || start >= n || step == 0) return false;
    const std::int64_t room = step > 0 ? n - 1 - start : start;
    return count - 1 <= room / magnitude(step);
  };
  const bool inside = count <= 0 || last_is_inside();
  if (count < 0 || step == 0 || !inside)
    throw ValueError(fmt::format("[slice] {} elements from {} by {} on axis {} of {}: out of range", count,
                                 start, step, a, ferrite::to_string(layout.shape)));
  return layout.slice(a, count > 0 ? start : 0, count, count > 1 ? step : 1);
}

Slice resolve_slice(int axis, std::int64_t extent, std::optional<std::int64_t> start,
                    std::optional<std::int64_t> stop, std::int64_t step) {
  if (step == 0) throw ValueError("[slice] step 0: must not be 0");
  const bool forward = step > 0;
  const std::int64_t lowest = forward ? 0 : -1, highest = forward ? extent : extent - 1;
  const auto resolve = [&](std::int64_t bound) {
    return std::clamp(bound < 0 ? bound + extent : bound, lowest, highest);
  };
  const std::int64_t first = start ? resolve(*start) : (forward ? lowest : highest);
  const std::int64_t end = stop ? resolve(*stop) : (forward ? highest : lowest);
  const std::int64_t span = forward ? end - first : first - end;
  return {axis, first, span > 0 ? 1 + (span - 1) / magnitude(step) : 0, step};
}

Metas Expand::infer(MetaSpan in) const { return infer_view(*this, in); }

std::optional<Layout> Expand::view(const Layout& layout) const {
  if (!(broadcast(type_name, layout.shape, shape) == shape))
    throw ShapeError(fmt::format("[expand] {} to {}: only axes of extent 1 can grow",
                                 ferrite::to_string(layout.shape), ferrite::to_string(shape)));
  return layout.expand(shape);
}

Metas Windows::infer(MetaSpan in) const { return infer_view(*this, in); }

std::optional<Layout> Windows::view(const Layout& layout) const {
  const int a = normalize_axis(type_name, axis, layout.shape.rank());
  const std::int64_t n = layout.shape[a];
  const std::int64_t reach = size < 1 || dilation < 1 ? 0 : saturating_multiply_add(size - 1, dilation, 1);
  if (layout.shape.rank() == max_rank)
    throw ShapeError(fmt::format("[windows] {}: has {} axes, and windows add one; the most is {}",
                                 ferrite::to_string(layout.shape), max_rank, max_rank));
  if (size < 1 || step < 1 || dilation < 1 || reach > n)
    throw ShapeError(fmt::format(
        "[windows] size {}, step {}, dilation {} on axis {} of {}: windows must fit and all three "
        "be positive",
        size, step, dilation, a, ferrite::to_string(layout.shape)));
  Layout result = layout;
  result.shape[a] = (n - reach) / step + 1;
  if (result.shape[a] > 1) result.strides[a] = layout.strides[a] * step;
  result.shape.push_back(size);
  result.strides.push_back(size > 1 ? layout.strides[a] * dilation : 0);
  return result;
}

Metas Fold::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  Shape shape = in[0].shape;
  if (shape.rank() < 2 || shape.back() < 1)
    throw ShapeError(
        fmt::format("[fold] {}: needs windows of at least one element along a last axis of their own",
                    ferrite::to_string(shape)));
  if (in[0].dtype == DType::bool_) throw DTypeError("[fold] x is bool: needs a number type; cast it first");
  if (length < 0 || step < 1 || dilation < 1)
    throw ValueError(fmt::format("[fold] length {}, step {}, dilation {}: must be at least 0, 1 and 1",
                                 length, step, dilation));
  const std::int64_t size = shape.back();
  shape.erase(shape.rank() - 1);
  const int a = normalize_axis(type_name, axis, shape.rank());
  const std::int64_t window = saturating_multiply_add(size - 1, dilation, 1);
  if (shape[a] > 0 && saturating_multiply_add(shape[a] - 1, step, window) > length)
    throw ShapeError(
        fmt::format("[fold] {} windows of {} do not fit into length {}", shape[a], size, length));
  shape[a] = length;
  return {Meta{shape, in[0].dtype}};
}

double Fold::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

}  // namespace ferrite::op
