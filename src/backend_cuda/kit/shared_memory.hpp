// Shared memory beyond the 48 KiB that a block has by default.
#pragma once

#include <limits>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// Bytes that a block may have. Without a device, which only answers which kernels there are, any number.
inline std::size_t most_shared_memory(const Cuda& cuda) {
  static const Cuda none = Cuda::without_device();
  return cuda == none ? std::numeric_limits<std::size_t>::max()
                      : cuda.context().properties().sharedMemPerBlockOptin;
}

/// Lets blocks of the kernel use all shared memory. Always the same amount: threads that launch one kernel
/// with different sizes must not reduce it for each other.
inline void allow_all_shared_memory(const Call& call, const void* kernel) {
  cudaFuncAttributes own{};
  check(cudaFuncGetAttributes(&own, kernel), call.op());
  const std::size_t most = call.properties().sharedMemPerBlockOptin - own.sharedSizeBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)),
        call.op());
}

}  // namespace ferrite::cuda
