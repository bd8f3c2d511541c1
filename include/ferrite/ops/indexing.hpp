// Indexing as in NumPy: x[i], x[{Range(0, 2), 3}], x[mask]. All except the mask are views.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/views.hpp"
#include "ferrite/tensor/tensor.hpp"

namespace ferrite {

/// Python's start:stop:step. Range() is the whole axis, Range(2) all from 2 on, Range(std::nullopt, -1) all
/// but the last. Negative bounds count from the end, bounds beyond the ends are clipped.
struct Range {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;

  Range() = default;
  explicit Range(std::optional<std::int64_t> from, std::optional<std::int64_t> to = std::nullopt,
                 std::int64_t by = 1)
      : start(from), stop(to), step(by) {}
};
/// Stands for all remaining axes; at most one per list.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};
/// A new axis of extent 1.
struct NewAxis {};
inline constexpr NewAxis new_axis{};

/// One entry of an index list. A number picks one place and drops the axis.
class Index {
 public:
  using Place = std::variant<std::int64_t, Range, Ellipsis, NewAxis>;

  // NOLINTBEGIN(google-explicit-constructor): entries of a list in braces
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T place) : place_(static_cast<std::int64_t>(place)) {}
  Index(Range range) : place_(range) {}
  Index(Ellipsis all) : place_(all) {}
  Index(NewAxis axis) : place_(axis) {}
  // NOLINTEND(google-explicit-constructor)

  const Place& place() const { return place_; }
  /// False for an ellipsis and a new axis.
  bool takes_axis() const { return place_.index() < 2; }

 private:
  Place place_;
};

namespace detail {
/// How many whole axes the ellipsis stands for (those after the list, if it has none). Throws ShapeError for
/// more entries than axes and for a second ellipsis.
FERRITE_API int axes_left_over(std::string_view function, std::span<const Index> places, const Shape& shape);
/// Throws unless the mask is bool and its shape is x's, or a leading part of it.
FERRITE_API void check_mask(std::string_view function, const Meta& x, const Meta& mask);

template <class B>
Tensor<B> index_list(std::string_view function, const Tensor<B>& x, std::span<const Index> places) {
  const int left_over = axes_left_over(function, places, x.shape());
  Tensor<B> y = x;
  int axis = 0;
  for (const Index& index : places) {
    if (const auto* at = std::get_if<std::int64_t>(&index.place())) {
      y = select_place(function, y, axis, *at);
    } else if (const auto* range = std::get_if<Range>(&index.place())) {
      y = slice(y, axis++, range->start, range->stop, range->step);
    } else if (std::holds_alternative<NewAxis>(index.place())) {
      y = unsqueeze(y, axis++);
    } else {
      axis += left_over;
    }
  }
  return y;
}
template <class B>
Tensor<B> index_mask(std::string_view function, const Tensor<B>& x, const Tensor<B>& mask) {
  check_mask(function, x.meta(), mask.meta());
  const std::vector<bool> flags = mask.template to_vector<bool>();
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) places.push_back(static_cast<std::int64_t>(i));
  Shape flat{mask.numel()};
  for (int i = mask.rank(); i < x.rank(); ++i) flat.push_back(x.shape()[i]);
  return index_select(reshape(x, flat), 0, from_vector(x.backend(), places));
}
}  // namespace detail

/// One entry per axis; missing ones at the end are taken whole: slice(x, {Range(0, 2), Range(), 3}) is
/// NumPy's x[0:2, :, 3]. A view.
template <class B>
Tensor<B> slice(const Tensor<B>& x, std::initializer_list<Index> places) {
  return detail::index_list("slice", x, std::span(places.begin(), places.size()));
}

/// # Shapes: x [d..., r...], mask bool [d...] -> [n, r...]: x where the mask is true, in row-major order. The
/// length of the result depends on the mask's values, so the host reads them: it waits for the device, and a
/// captured graph cannot contain it. Gradients flow to x.
template <class B>
Tensor<B> masked_select(const Tensor<B>& x, const Tensor<B>& mask) {
  return detail::index_mask("masked_select", x, mask);
}

template <class B>
Tensor<B> Tensor<B>::operator[](std::int64_t index) const {
  return detail::select_place("index", *this, 0, index);
}
template <class B>
Tensor<B> Tensor<B>::operator[](std::initializer_list<Index> places) const {
  return detail::index_list("index", *this, std::span(places.begin(), places.size()));
}
template <class B>
Tensor<B> Tensor<B>::operator[](const Tensor& mask) const {
  return detail::index_mask("index", *this, mask);
}

}  // namespace ferrite
