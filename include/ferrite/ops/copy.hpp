// copy: strided to strided with a cast between any two dtypes. cast, contiguous, and what cat and pad are
// assembled from.
#pragma once

#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace op {

struct FERRITE_API Copy {
  static constexpr LibraryName type_name = "copy";
  static constexpr bool takes_storage = true;
  DType dtype = DType::f32;

  Metas infer(MetaSpan in) const;
  Metas example(DType d) {
    dtype = d;
    return detail::alike(1, {2, 3}, d);
  }
  static void attributes(auto& self, auto&& visit) { visit("dtype", self.dtype); }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.add(0, v.grad());  // the engine casts a contribution to the dtype of its input
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Copy& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::Copy& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

/// Element conversion as described at core/dtype.hpp `convert`. Shares the buffer if the dtype is the same.
template <class B>
Tensor<B> cast(const Tensor<B>& x, DType dtype) {
  return x.dtype() == dtype ? x : eval(op::Copy{dtype}, x);
}
/// A dense row-major tensor with the same elements; x itself if it is dense.
template <class B>
Tensor<B> contiguous(const Tensor<B>& x) {
  return x.layout().is_contiguous() ? x : eval(op::Copy{x.dtype()}, x);
}
/// Always a fresh buffer.
template <class B>
Tensor<B> clone(const Tensor<B>& x) {
  return eval(op::Copy{x.dtype()}, x);
}

}  // namespace ferrite
