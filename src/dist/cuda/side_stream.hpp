// SideStream: work of a GPU that runs beside its compute stream.
#pragma once

#include "backend_cuda/runtime/device_context.hpp"

namespace ferrite::dist {

/// Also inside a capture of the compute stream, which then has a branch.
class SideStream {
 public:
  explicit SideStream(cuda::DeviceContext& context) : context_(context) {
    const cuda::DeviceGuard guard(context.index());
    int least = 0, greatest = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "dist");
    // Others wait for what runs here: its blocks go first.
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "dist");
  }
  ~SideStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  cudaStream_t get() const { return stream_; }
  /// What it is given next runs after what the compute stream has been given so far; and the other way round.
  void after_compute() { wait(stream_, context_.stream()); }
  void before_compute() { wait(context_.stream(), stream_); }

 private:
  void wait(cudaStream_t waiting, cudaStream_t other) {
    const cuda::DeviceGuard guard(context_.index());
    const cuda::PooledEvent event(context_.events());
    cuda::check(cudaEventRecord(event.get(), other), "dist");
    cuda::check(cudaStreamWaitEvent(waiting, event.get()), "dist");
  }

  cuda::DeviceContext& context_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace ferrite::dist
