// Kernels whose blocks stay: as many as run at once, each with its tables in shared memory, taking turns over
// the data.
#pragma once

#include <algorithm>

#include "backend_cuda/launch.hpp"

namespace ferrite::cuda {

/// Shared memory of a kernel's blocks, in bytes; `threads` threads each.
struct BlockSize {
  int threads = block_threads;
  std::size_t shared_bytes = 0;
};

/// How many of these blocks the whole GPU holds at once; at least one. Lets the kernel have its shared
/// memory, so it comes before launch_blocks.
template <class Args>
std::int64_t blocks_at_once(const Call& call, void (*kernel)(Args), BlockSize block) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(block.shared_bytes)),
        call.op());
  int per_processor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, block.threads,
                                                      block.shared_bytes),
        call.op());
  return std::max<std::int64_t>(
      1, std::int64_t{per_processor} * call.context().properties().multiProcessorCount);
}

/// blocks x groups blocks, on the call's stream.
template <class Args>
void launch_blocks(const Call& call, void (*kernel)(Args), BlockSize block, std::int64_t blocks,
                   std::int64_t groups, Args args) {
  void* parameters[] = {&args};
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(groups));
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid,
                         dim3(static_cast<unsigned>(block.threads)), parameters, block.shared_bytes,
                         call.stream()),
        call.op());
}

}  // namespace ferrite::cuda
