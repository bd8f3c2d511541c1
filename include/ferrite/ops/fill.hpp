// fill: a tensor of one value. full, zeros, ones, empty.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/op.hpp"

namespace ferrite {
namespace op {

struct FERRITE_API Fill {
  static constexpr std::string_view type_name = "fill";
  Shape shape;
  DType dtype = DType::f32;
  Scalar value = 0;

  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) {
    visit("shape", self.shape);
    visit("dtype", self.dtype);
    visit("value", self.value);
  }
};

}  // namespace op

/// # Shapes: result `shape`, every element `value` converted to `dtype`.
template <class B>
Tensor<B> full(B& b, const Shape& shape, Scalar value, DType dtype = DType::f32) {
  return create(b, op::Fill{shape, dtype, value});
}
template <class B>
Tensor<B> zeros(B& b, const Shape& shape, DType dtype = DType::f32) {
  return full(b, shape, 0, dtype);
}
template <class B>
Tensor<B> ones(B& b, const Shape& shape, DType dtype = DType::f32) {
  return full(b, shape, 1, dtype);
}
template <class B>
Tensor<B> full_like(const Tensor<B>& x, Scalar value) {
  return full(x.backend(), x.shape(), value, x.dtype());
}
template <class B>
Tensor<B> zeros_like(const Tensor<B>& x) {
  return full_like(x, 0);
}
template <class B>
Tensor<B> ones_like(const Tensor<B>& x) {
  return full_like(x, 1);
}

}  // namespace ferrite
