// Hands tensors to other libraries without a copy: PyTorch, NumPy, CuPy and JAX accept the results.
#pragma once

#include "ferrite/interop/dlpack.h"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {
namespace detail {
FERRITE_API DLManagedTensor* export_dlpack(const Array& array);
FERRITE_API DLManagedTensorVersioned* export_dlpack_versioned(const Array& array);
}  // namespace detail

/// The tensor's memory as it is, with its dtype and device, in any layout but those that go backwards (flip):
/// PyTorch ends the process when it gets one, so they are a ValueError. The memory stays alive until the
/// consumer calls `deleter`, even if all tensors of it are gone. It is shared: both sides see each other's
/// writes. Waits until the backend has finished all its work. On a GPU the deleter takes earlier work on
/// CUDA's default stream into account; a consumer with streams that ignore the default stream must
/// synchronise before it calls the deleter.
template <class B>
DLManagedTensor* to_dlpack(const Tensor<B>& x) {
  detail::kernel_backend(x.backend()).synchronize();
  return detail::export_dlpack(detail::array_in_memory(x.backend(), detail::kernel_array(x.primitive())));
}
/// The same with version and flags, which newer consumers ask for.
template <class B>
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor<B>& x) {
  detail::kernel_backend(x.backend()).synchronize();
  return detail::export_dlpack_versioned(
      detail::array_in_memory(x.backend(), detail::kernel_array(x.primitive())));
}

}  // namespace ferrite
