// assign from a tensor: new elements in the buffer that a tensor has.
#pragma once

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/ops/copy.hpp"

namespace ferrite {

/// Writes `source` into the buffer of `target`, so that every tensor that shares the buffer sees it, and a
/// recorded step reads it. Shapes must be equal; elements are converted to the dtype of `target`. It does not
/// take part in gradients.
template <class B>
void assign(const Tensor<B>& target, const Tensor<B>& source) {
  detail::check_shape("assign", "source", source.shape(), target.shape());
  const Array* in[] = {&detail::kernel_array(source.primitive())};
  Array out = detail::kernel_array(target.primitive());
  evaluate_in_place(detail::kernel_backend(target.backend()), op::Copy{target.dtype()}, Ins(in, 1),
                    Outs(&out, 1));
}

}  // namespace ferrite
