// scatter: writes elements along one axis at the places an index tensor names.
#pragma once

#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/pad.hpp"

namespace ferrite {
namespace op {

/// The gradient of a scatter's source (input 2): the gradient at the places of the index (input 1), 0 where
/// the source was longer than the index.
template <class B>
void add_source_gradient(Vjp<B>& v, int axis) {
  const Tensor<B> index = v.input(1);
  Shape beyond = v.input_meta(2).shape;
  if (index.shape() == beyond) return v.into(2, Gather{axis}, v.grad(), index);
  for (int i = 0; i < beyond.rank(); ++i) beyond[i] -= index.shape()[i];
  v.add(2, pad(eval(Gather{axis}, v.grad(), index), Shape::filled(beyond.rank(), 0), beyond));
}

/// # Shapes: x, index, source of one rank, source at least as long as index -> x's shape.
/// A copy of x with out[index[i][j]][j] = source[i][j] for axis 0. If several writes hit one element, the one
/// with the highest index position wins, on every backend.
struct FERRITE_API Scatter {
  static constexpr LibraryName type_name = "scatter";
  static constexpr bool takes_storage = true;
  int axis = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  Metas example(DType d) const { return {{{2, 3}, d}, detail::ids({2, 3}), {{2, 3}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  Saves saves() const { return {.inputs = {1}}; }  // index
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> index = v.input(1);
    if (v.needs(0))
      v.into(0, Scatter{axis}, v.grad(), index, full(v.backend(), index.shape(), 0, v.grad().dtype()));
    if (v.needs(2)) add_source_gradient(v, axis);
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Scatter& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Scatter& op, Ins in, Outs out);

template <class B>
Tensor<B> scatter(const Tensor<B>& x, int axis, const Tensor<B>& index, const Tensor<B>& source) {
  return eval(op::Scatter{axis}, x, index, source);
}

}  // namespace ferrite
