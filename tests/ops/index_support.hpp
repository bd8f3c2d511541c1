// What the tests of gather and scatter share: shapes, random indices, and loops over them.
#pragma once

#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {

/// The multi-index of element i of a shape.
inline Shape place_of(const Shape& shape, std::int64_t i) {
  Shape place = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[axis] = i % shape[axis];
    i /= shape[axis];
  }
  return place;
}
inline std::size_t number_of(const Shape& shape, const Shape& place) {
  std::int64_t i = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) i = i * shape[axis] + place[axis];
  return size(i);
}

/// For every index in row-major order: its number and the number of the element of x it names.
template <class F>
void for_each_index(const Shape& x, const Array& index, int axis, F&& f) {
  const Values chosen = values_of(index);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Shape place = place_of(index.shape(), static_cast<std::int64_t>(i));
    const auto c = static_cast<std::int64_t>(chosen[i]);
    place[axis] = c < 0 ? c + x[axis] : c;
    f(i, number_of(x, place));
  }
}

struct IndexCase {
  Shape x, index;
  int axis;
};
inline const IndexCase index_cases[] = {{{7, 5, 33}, {20, 5, 33}, 0}, {{7, 5, 33}, {4, 9, 20}, 1},
                                        {{7, 5, 33}, {7, 5, 70}, 2},  {{50, 3}, {4000, 3}, 0},
                                        {{3000}, {5000}, 0},          {{4, 6}, {0, 6}, 0},
                                        {{4, 600}, {40, 600}, 0},     {{1}, {1}, 0}};

inline Array random_index(DType dtype, const IndexCase& c, Form form) {
  const auto length = static_cast<double>(c.x[c.axis]);
  return random(dtype, c.index, 11, dtype == DType::u8 || dtype == DType::u16 ? 0 : -length, length, form);
}

}  // namespace ferrite::cpu_test
