// assign from a tensor: new elements in the buffer that a tensor has.
#pragma once

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

/// Writes `source` into the buffer of `target`, so that every tensor that shares the buffer sees it, and a
/// recorded step reads it. Shapes must be equal; elements are converted to the dtype of `target`. The source
/// may be a view of the same buffer: it is read as it was before. Throws ShapeError if elements of the target
/// share memory, as those of an expanded tensor do. It does not take part in gradients.
template <class B>
void assign(const Tensor<B>& target, const Tensor<B>& source) {
  detail::check_shape("assign", "source", source.shape(), target.shape());
  const auto copy = [](const Tensor<B>& from, const Tensor<B>& to) {
    const Array* in[] = {&detail::kernel_array(from.primitive())};
    Array out = detail::kernel_array(to.primitive());
    evaluate_in_place(detail::kernel_backend(to.backend()), op::Copy{to.dtype()}, Ins(in, 1), Outs(&out, 1));
  };
  const Array &from = detail::kernel_array(source.primitive()),
              &to = detail::kernel_array(target.primitive());
  if (to.layout().may_overlap())
    throw ShapeError(
        "[assign] target " + to_string(target.shape()) +
        ": its elements share memory; write to the tensor that it is a view of, or to a clone()");
  if (from.buffer() != to.buffer() || !byte_range(from).meets(byte_range(to))) return copy(source, target);
  B backend = source.backend();
  const Tensor<B> before = empty(backend, source.shape(), source.dtype());
  copy(source, before);
  copy(before, target);
}

}  // namespace ferrite
