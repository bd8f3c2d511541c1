// Launches of kernels that take their arguments as one struct by value.
#pragma once

#include "ferrite/core/integers.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

inline constexpr int block_threads = 256;

/// Whether the current GPU is Hopper or later and runs code that was compiled for it: clusters of blocks,
/// bulk copies and early starts need both.
FERRITE_API bool runs_hopper_code();

/// Whether the GPU may set up a kernel while the one before it in the stream still runs. `early` is only for
/// kernels whose threads all begin with wait_for_earlier_kernels() (device.cuh), before any access to memory
/// but prefetches and what only they depend on, and that are compiled for the same GPUs as ferrite. A small
/// kernel then costs a fifth less. On GPUs before Hopper it means `in_turn`.
enum class Start : std::uint8_t { in_turn, early };

/// The arguments of cudaLaunchKernelExC.
class LaunchConfig {
 public:
  LaunchConfig(cudaStream_t stream, dim3 grid, int block, std::int64_t shared_bytes = 0, int cluster = 1,
               Start start = Start::in_turn) {
    config_.gridDim = grid;
    config_.blockDim = dim3(static_cast<unsigned>(block));
    config_.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
    config_.stream = stream;
    config_.attrs = attributes_;
    if (cluster > 1) {
      cudaLaunchAttribute& blocks = attributes_[config_.numAttrs++];
      blocks.id = cudaLaunchAttributeClusterDimension;
      blocks.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    }
    if (start == Start::early && runs_hopper_code()) {
      cudaLaunchAttribute& early = attributes_[config_.numAttrs++];
      early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttribute attributes_[2];
  cudaLaunchConfig_t config_{};
};

inline dim3 grid_of(std::int64_t x, std::int64_t y = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y)};
}
/// The threads and shared memory of a block. `cluster` neighbouring blocks on the grid's x axis run together;
/// more than one need runs_hopper_code().
struct BlockSize {
  int threads = block_threads;
  std::int64_t shared_bytes = 0;
  int cluster = 1;
};

/// On the call's stream. Throws if the launch is refused.
template <class Args>
void launch(const Call& call, void (*kernel)(Args), dim3 grid, BlockSize block, Args args,
            Start start = Start::in_turn) {
  void* parameters[] = {&args};
  const LaunchConfig config(call.stream(), grid, block.threads, block.shared_bytes, block.cluster, start);
  check(cudaLaunchKernelExC(config.get(), reinterpret_cast<const void*>(kernel), parameters), call.op());
}
template <class Args>
void launch(const Call& call, void (*kernel)(Args), std::int64_t blocks, Args args,
            Start start = Start::in_turn) {
  launch(call, kernel, grid_of(blocks), BlockSize{}, args, start);
}

}  // namespace ferrite::cuda
