// Persistent kernels: as many blocks as run at once, each with its tables in shared memory, taking turns over
// the data.
#pragma once

#include <algorithm>

#include "backend_cuda/kit/shared_memory.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {

/// How many of these blocks the whole GPU holds at once; at least one. Also grants the kernel its shared
/// memory, so call it before the launch.
template <class Args>
std::int64_t blocks_at_once(const Call& call, void (*kernel)(Args), BlockSize block) {
  allow_all_shared_memory(call, reinterpret_cast<const void*>(kernel));
  int per_processor = 0;
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, block.threads,
                                                      static_cast<std::size_t>(block.shared_bytes)),
        call.op());
  return std::max<std::int64_t>(1, std::int64_t{per_processor} * call.properties().multiProcessorCount);
}

}  // namespace ferrite::cuda
