// fill: a tensor of one value. full, zeros, ones, empty.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

struct FERRITE_API Fill {
  static constexpr LibraryName type_name = "fill";
  static constexpr bool takes_storage = true;
  Shape shape;
  DType dtype = DType::f32;
  Scalar value = 0;
  /// The function that was called (a literal), for messages and reports; not an attribute.
  std::string_view called = type_name;

  std::string_view name() const { return called; }
  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    dtype = d;
    return {};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("shape", self.shape);
    visit("dtype", self.dtype);
    visit("value", self.value);
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Fill& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Fill& op, Ins in, Outs out);

/// # Shapes: result `shape`, every element `value` converted to `dtype`.
template <class B>
Tensor<B> full(B& b, const Shape& shape, Scalar value, DType dtype = DType::f32) {
  return create(b, op::Fill{shape, dtype, value, "full"});
}
/// full with the value 0.
template <class B>
Tensor<B> zeros(B& b, const Shape& shape, DType dtype = DType::f32) {
  return create(b, op::Fill{shape, dtype, 0, "zeros"});
}
/// full with the value 1.
template <class B>
Tensor<B> ones(B& b, const Shape& shape, DType dtype = DType::f32) {
  return create(b, op::Fill{shape, dtype, 1, "ones"});
}
/// full with the shape, dtype and backend of x.
template <class B>
Tensor<B> full_like(const Tensor<B>& x, Scalar value) {
  return create(x.backend(), op::Fill{x.shape(), x.dtype(), value, "full_like"});
}
/// zeros with the shape, dtype and backend of x.
template <class B>
Tensor<B> zeros_like(const Tensor<B>& x) {
  return create(x.backend(), op::Fill{x.shape(), x.dtype(), 0, "zeros_like"});
}
/// ones with the shape, dtype and backend of x.
template <class B>
Tensor<B> ones_like(const Tensor<B>& x) {
  return create(x.backend(), op::Fill{x.shape(), x.dtype(), 1, "ones_like"});
}

}  // namespace ferrite
