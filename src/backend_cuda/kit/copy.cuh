// Kernels that copy to one element type.
#pragma once

#include "backend_cuda/kit/functions.cuh"
#include "backend_cuda/kit/kernel_tables.hpp"

namespace ferrite::cuda {

template <class H>
Kernels copy_kernels(DType from) {
  using T = DeviceType<H>;
  Kernels kernels;
  visit_any_device_type(from, [&]<class From>() {
    kernels.dense = dense_kernel<Only<CopySet, 0>, T, From>;
    if constexpr (std::is_same_v<T, From>) kernels.rows = row_kernel<Only<CopySet, 0>, T, T>;
  });
  return kernels;
}

}  // namespace ferrite::cuda
