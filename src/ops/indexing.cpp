// The rules of index lists and masks.
#include "ferrite/ops/indexing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace ferrite::detail {

int axes_left_over(std::string_view function, std::span<const Index> places, const Shape& shape) {
  const auto taken =
      static_cast<int>(std::count_if(places.begin(), places.end(), std::mem_fn(&Index::takes_axis)));
  const auto ellipses = std::count_if(places.begin(), places.end(), [](const Index& index) {
    return std::holds_alternative<Ellipsis>(index.place());
  });
  if (ellipses > 1) throw ShapeError(fmt::format("[{}] {} ellipses: at most one", function, ellipses));
  if (taken > shape.rank())
    throw ShapeError(fmt::format("[{}] {} entries for {}: it has {} axes", function, taken, to_string(shape),
                                 shape.rank()));
  return shape.rank() - taken;
}

void check_mask(std::string_view function, const Meta& x, const Meta& mask) {
  if (mask.dtype != DType::bool_)
    throw DTypeError(
        fmt::format("[{}] the mask is {}: needs bool, as comparisons give it (index_select takes "
                    "positions)",
                    function, to_string(mask.dtype)));
  bool fits = mask.shape.rank() <= x.shape.rank();
  for (int i = 0; fits && i < mask.shape.rank(); ++i) fits = mask.shape[i] == x.shape[i];
  if (!fits)
    throw ShapeError(fmt::format("[{}] x {} and mask {}: the mask needs x's shape, or the first part of it",
                                 function, to_string(x.shape), to_string(mask.shape)));
}

}  // namespace ferrite::detail
