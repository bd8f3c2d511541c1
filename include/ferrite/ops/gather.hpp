// gather: picks elements along one axis by an index tensor. take_along, index_select.
#pragma once

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

/// # Shapes: x [d0, ..., dn], index of the same rank, no longer than x on the other axes -> index's shape.
/// out[i][j][k] = x[index[i][j][k]][j][k] for axis 0. An index outside [-d, d) is a ValueError.
struct FERRITE_API Gather {
  static constexpr LibraryName type_name = "gather";
  static constexpr bool takes_storage = true;
  int axis = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  Metas example(DType d) const { return {{{2, 3}, d}, detail::ids({2, 3})}; }
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  Saves saves() const { return {.inputs = {1}}; }  // index
  template <class B>
  void vjp(Vjp<B>& v) const;
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Gather& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Gather& op, Ins in, Outs out);

template <class B>
Tensor<B> gather(const Tensor<B>& x, int axis, const Tensor<B>& index) {
  return eval(op::Gather{axis}, x, index);
}

}  // namespace ferrite
