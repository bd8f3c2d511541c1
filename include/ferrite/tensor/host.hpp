// Conversion between HostTensor, which files and data sets hold, and tensors of a backend.
#pragma once

#include "ferrite/io/host_tensor.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

/// A copy of all elements, dense and row-major.
template <class B>
HostTensor to_host(const Tensor<B>& x) {
  auto& owner = detail::kernel_backend(x.backend());
  const Array dense = detail::contiguous(owner, detail::kernel_array(x.primitive()));
  return HostTensor::make(x.dtype(), x.shape(),
                          [&](std::span<std::byte> bytes) { owner.copy_to_host(dense, bytes.data()); });
}

/// A copy on a backend.
template <class B>
Tensor<B> from_host(B& backend, const HostTensor& x) {
  return from_bytes(backend, {x.shape(), x.dtype()}, x.bytes().data());
}

/// Writes `source` into the buffer of `target`, so that every tensor that shares the buffer sees it. Shapes
/// must be equal and `target` dense; elements are converted to its dtype.
template <class B>
void assign(const Tensor<B>& target, const HostTensor& source) {
  detail::check_shape("assign", "source", source.shape(), target.shape());
  const Array& array = detail::kernel_array(target.primitive());
  auto& owner = detail::kernel_backend(target.backend());
  if (source.dtype() == array.dtype()) {
    owner.copy_from_host(array, source.bytes().data());
  } else {
    std::vector<std::byte> converted(array.meta().bytes());
    detail::convert_elements(source.dtype(), source.bytes().data(), array.dtype(), converted.data(),
                             source.numel());
    owner.copy_from_host(array, converted.data());
  }
  array.buffer()->bump_version();
}

}  // namespace ferrite
