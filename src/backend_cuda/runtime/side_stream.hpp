// SideStream: work of a GPU that runs beside its compute stream.
#pragma once

#include "backend_cuda/runtime/device_context.hpp"

namespace ferrite::cuda {

/// Also inside a capture of the compute stream, which then has a branch.
class SideStream {
 public:
  /// Whose blocks go first where both have work.
  enum class Priority { before_compute, after_compute };

  SideStream(DeviceContext& context, Priority priority) : context_(context) {
    const DeviceGuard guard(context.index());
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cuda");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                       priority == Priority::before_compute ? greatest : least),
          "cuda");
  }
  ~SideStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  cudaStream_t get() const { return stream_; }
  /// What it is given next runs after what the compute stream has been given so far; and the other way round.
  void after_compute() { wait(stream_, context_.compute_stream()); }
  void before_compute() { wait(context_.compute_stream(), stream_); }

 private:
  void wait(cudaStream_t waiting, cudaStream_t other) {
    const DeviceGuard guard(context_.index());
    const PooledEvent event(context_.events());
    check(cudaEventRecord(event.get(), other), "cuda");
    check(cudaStreamWaitEvent(waiting, event.get()), "cuda");
  }

  DeviceContext& context_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace ferrite::cuda
