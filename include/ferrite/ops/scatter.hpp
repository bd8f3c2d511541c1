// scatter: writes elements along one axis at the places an index tensor names.
#pragma once

#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/iota.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/pad.hpp"
#include "ferrite/ops/where.hpp"

namespace ferrite {
namespace op {

/// The gradient of a scatter's source (input 2) by an op that gives it in the shape of the index: 0 where the
/// source was longer.
template <class B, class Op>
void add_source_gradient(Vjp<B>& v, const Op& op, const Tensor<B>& a, const Tensor<B>& b) {
  const Shape written = v.input_meta(1).shape;
  Shape beyond = v.input_meta(2).shape;
  if (written == beyond) return v.into(2, op, a, b);
  for (int i = 0; i < beyond.rank(); ++i) beyond[i] -= written[i];
  v.add(2, pad(eval(op, a, b), Shape::filled(beyond.rank(), 0), beyond));
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
    if (v.needs(2))
      add_source_gradient(v, Where{ScalarSide::right, 0}, stays(v.grad().shape(), index),
                          eval(Gather{axis}, v.grad(), index));
  }

 private:
  /// Whether what is written at each place of the index is still there at the end: the positions are written
  /// themselves, and read back.
  template <class B>
  Tensor<B> stays(const Shape& shape, const Tensor<B>& index) const {
    const int a = normalize_axis(type_name, axis, shape.rank());
    Shape line = Shape::filled(shape.rank(), 1);
    line[a] = index.shape()[a];
    const Tensor<B> position = expand(reshape(arange(index.backend(), line[a]), line), index.shape());
    const Tensor<B> last = eval(*this, full(index.backend(), shape, 0, DType::i64), index, position);
    return eval(Gather{a}, last, index) == position;
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
