// One launch of a kernel that takes its arguments as one struct by value.
#pragma once

#include "backend_cuda/arrays.hpp"

namespace ferrite::cuda {

inline constexpr int block_threads = 256;

/// Blocks of block_threads threads, on the call's stream. A refused launch is thrown here.
template <class Args>
void launch(const Call& call, void (*kernel)(Args), dim3 blocks, Args args, std::size_t shared_bytes = 0) {
  void* parameters[] = {&args};
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, dim3(block_threads), parameters,
                         shared_bytes, call.stream()),
        call.op());
}
template <class Args>
void launch(const Call& call, void (*kernel)(Args), std::int64_t blocks, Args args,
            std::size_t shared_bytes = 0) {
  launch(call, kernel, dim3(static_cast<unsigned>(blocks)), args, shared_bytes);
}

}  // namespace ferrite::cuda
