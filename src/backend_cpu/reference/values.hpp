// Reference sees arrays as plain vectors in row-major order. This header deals with layouts and dtypes, so
// that each op is a loop over numbers.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "ferrite/core/array.hpp"

namespace ferrite::reference {

/// Calls f(offset from the first element) for every element, in row-major order of the shape.
template <class F>
void for_each_offset(const Layout& layout, F&& f) {
  if (layout.shape.numel() == 0) return;
  const int rank = layout.shape.rank();
  Shape index = Shape::filled(rank, 0);
  std::int64_t offset = 0;
  for (int axis = rank; axis >= 0;) {
    f(offset);
    for (axis = rank - 1; axis >= 0; --axis) {  // the odometer: the last axis turns fastest
      offset += layout.strides[axis];
      if (++index[axis] < layout.shape[axis]) break;
      offset -= layout.strides[axis] * layout.shape[axis];
      index[axis] = 0;
    }
  }
}

/// Calls f.template operator()<Wide>() with the type that elements of `dtype` are computed in.
template <class F>
void visit_wide(DType dtype, F&& f) {
  if (is_floating(dtype))
    f.template operator()<double>();
  else
    f.template operator()<std::int64_t>();
}

template <class Wide>
std::vector<Wide> read_values(const Array& x) {
  std::vector<Wide> values(static_cast<std::size_t>(x.shape().numel()));
  Wide* next = values.data();
  visit_any_dtype(x.dtype(), [&]<class T>() {
    // Bools are read as bytes: memory that came from outside may hold others than 0 and 1.
    const auto* data = x.data<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>();
    for_each_offset(x.layout(), [&](std::int64_t at) { *next++ = convert<Wide>(convert<T>(data[at])); });
  });
  return values;
}

/// Converts once, from Wide to the dtype of `x`.
template <class Wide>
void write_values(const Array& x, const std::vector<Wide>& values) {
  const Wide* next = values.data();
  visit_any_dtype(x.dtype(), [&]<class T>() {
    T* data = x.data<T>();
    for_each_offset(x.layout(), [&](std::int64_t at) { data[at] = convert<T>(*next++); });
  });
}

}  // namespace ferrite::reference
