// scatter_add: adds elements along one axis at the places an index tensor names.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/scatter.hpp"

namespace ferrite {
namespace op {

/// # Shapes: as scatter. Contributions to one element are added in index order: deterministic.
struct FERRITE_API ScatterAdd {
  static constexpr LibraryName type_name = "scatter_add";
  static constexpr std::size_t index_input = 1;
  int axis = 0;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, detail::ids({2, 3}), {{2, 3}, d}}; }
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  Saves saves() const { return {.inputs = {1}}; }  // index
  template <class B>
  void vjp(Vjp<B>& v) const {
    if (v.needs(0)) v.add(0, v.grad());
    if (v.needs(2)) add_source_gradient(v, Gather{axis}, v.grad(), v.input(1));
  }
};

template <class B>
void Gather::vjp(Vjp<B>& v) const {
  const Tensor<B> base = full(v.backend(), v.input_meta(0).shape, 0, v.grad().dtype());
  v.into(0, ScatterAdd{axis}, base, v.input(1), v.grad());
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::ScatterAdd& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::ScatterAdd& op, Ins in, Outs out);

template <class B>
Tensor<B> scatter_add(const Tensor<B>& x, int axis, const Tensor<B>& index, const Tensor<B>& source) {
  return eval(op::ScatterAdd{axis}, x, index, source);
}

}  // namespace ferrite
