// What the kernels of linear algebra share on every backend.
#pragma once

#include "ferrite/core/array.hpp"

namespace ferrite {

/// The same matrices, rows for columns: a view.
inline Array turned(const Array& x) {
  Shape order;
  const int rank = x.shape().rank();
  for (int i = 0; i < rank - 2; ++i) order.push_back(i);
  order.push_back(rank - 1);
  order.push_back(rank - 2);
  return x.with_layout(x.layout().permute(order));
}

/// f.template operator()<T>() with the type of the elements, float or double.
template <class F>
void visit_real(DType dtype, F&& f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace ferrite
