// DeviceContext: everything ferrite holds of one GPU. All kernels of a GPU run on its one compute stream, in
// the order they were given; copies keep that order too, so no caller ever needs an event. The exception is a
// thread in a lane (aside.cpp), whose kernels, copies and memory are those of the lane.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "backend_cuda/runtime/pool.hpp"
#include "core/spin.hpp"
#include "ferrite/cuda/check.hpp"

namespace ferrite {
struct CudaDeviceInfo;
}

namespace ferrite::cuda {

/// Never throws; 0 if CUDA cannot be used, and why_no_device() says why.
FERRITE_API int device_count() noexcept;
FERRITE_API std::string why_no_device();
/// The same for any answer of cudaGetDeviceCount: versions as CUDA counts them (13000 is 13.0; a driver of 0
/// is none), and CUDA_VISIBLE_DEVICES, nullptr where it is not set.
FERRITE_API std::string why_no_device(cudaError_t status, int driver, int runtime, const char* visible);

/// Starts CUDA on it. Throws BackendError if the GPU fails.
CudaDeviceInfo describe_device(int index);

/// Makes a GPU current for this thread, and returns the previous one; negative if there is nothing to
/// restore. Costs nothing if there is only one GPU.
inline int make_current(int index) {
  if (device_count() <= 1) return -1;
  int previous = -1;
  check(cudaGetDevice(&previous), "cuda");
  if (previous == index) return -1;
  check(cudaSetDevice(index), "cuda");
  return previous;
}
inline void make_current_again(int previous) noexcept {
  if (previous >= 0) static_cast<void>(cudaSetDevice(previous));
}

/// The same for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index) : previous_(make_current(index)) {}
  ~DeviceGuard() { make_current_again(previous_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_;
};

/// Events of one GPU without timing, kept for reuse: making one takes microseconds.
class FERRITE_API EventPool {
 public:
  explicit EventPool(int device) : device_(device) {}
  cudaEvent_t take();
  void give_back(cudaEvent_t event) noexcept;

 private:
  const int device_;
  SpinLock lock_;
  std::vector<cudaEvent_t> free_;
  std::size_t made_ = 0;
};

/// An event for the length of a scope. It may be reused as soon as the waits for it are queued: they keep the
/// state that they saw.
class PooledEvent {
 public:
  explicit PooledEvent(EventPool& pool) : pool_(pool), event_(pool.take()) {}
  ~PooledEvent() { pool_.give_back(event_); }
  PooledEvent(const PooledEvent&) = delete;
  PooledEvent& operator=(const PooledEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  EventPool& pool_;
  cudaEvent_t event_;
};

class Staging;
class DeviceContext;

/// What a thread uses of a GPU instead of its compute stream and common pool.
struct Lane {
  const DeviceContext* context;
  cudaStream_t stream;
  Pool* pool;
};

/// While it lives, this thread is in that lane; nullptr: in none.
class FERRITE_API LaneScope {
 public:
  explicit LaneScope(const Lane* lane) noexcept;
  ~LaneScope();
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

 private:
  const Lane* outer_;
};

class FERRITE_API DeviceContext {
 public:
  /// Made at the first call, never destroyed: tensors in static objects may outlive every static of the
  /// library. Any thread. Throws DeviceError if there is no such GPU.
  static DeviceContext& of(int index);

  int index() const { return index_; }
  Device device() const { return {DeviceKind::cuda, index_}; }
  const cudaDeviceProp& properties() const { return properties_; }
  /// Where this thread's kernels go: the compute stream, or that of its lane.
  cudaStream_t stream() const {
    const Lane* const lane = this->lane();
    return lane ? lane->stream : stream_;
  }
  cudaStream_t compute_stream() const { return stream_; }
  /// Of this thread and on this GPU; nullptr if it is in none.
  const Lane* lane() const noexcept;
  /// For what must not run in a lane, because it uses memory that the compute stream's work uses too. Throws
  /// BackendError.
  void refuse_aside(std::string_view op) const;
  /// For downloads that must not hold up other threads' kernels.
  cudaStream_t copy_stream() const { return copy_stream_; }
  EventPool& events() { return events_; }

  /// The current source of buffers: the common pool, the arena of a capture (ArenaScope) or of a lane.
  Pool& pool() {
    const Lane* const lane = this->lane();
    return lane ? *lane->pool : *active_pool_.load(std::memory_order_relaxed);
  }
  Pool& common_pool() { return common_pool_; }
  std::shared_ptr<Buffer> allocate(std::size_t bytes) { return pool().allocate(bytes); }

  /// Waits for all work given to this GPU so far, that of lanes too. Throws BackendError if a kernel failed.
  void synchronize();
  /// While a lane is there, synchronize() waits for its stream.
  void add_lane(cudaStream_t stream);
  void remove_lane(cudaStream_t stream) noexcept;
  bool is_capturing() const;

  // Copies in the order of the compute stream, from any thread. Inside a capture, copies from and to the
  // host are a BackendError: a replay would access host memory at another time.
  /// `source` may be changed as soon as this returns.
  void copy_from_host(void* target, const void* source, std::size_t bytes);
  /// Returns when `target` is written.
  void copy_to_host(void* target, const void* source, std::size_t bytes);
  /// Both on this GPU; must not overlap.
  void copy_on_device(void* target, const void* source, std::size_t bytes);
  /// From a buffer of another GPU. It runs after all earlier work of both GPUs and before all later work.
  void copy_from_device(void* target, DeviceContext& source_device, const void* source, std::size_t bytes);

 private:
  friend class ArenaScope;
  DeviceContext(int index, const PoolOptions& options);
  ~DeviceContext() = delete;
  void enable_peer_access(int peer);

  const int index_;
  cudaDeviceProp properties_;
  cudaStream_t stream_, copy_stream_;
  EventPool events_;
  Pool& common_pool_;
  std::atomic<Pool*> active_pool_;
  Staging& staging_;
  SpinLock lanes_lock_;
  std::vector<cudaStream_t> lanes_;
  SpinLock peer_lock_;
  std::vector<bool> peers_tried_;
};

/// While it lives, all buffers of the GPU come from `arena` (Pool::make_arena): the memory of a captured
/// graph.
class ArenaScope {
 public:
  ArenaScope(DeviceContext& context, Pool& arena)
      : context_(context), outer_(context.active_pool_.exchange(&arena)) {}
  ~ArenaScope() { context_.active_pool_.store(outer_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  DeviceContext& context_;
  Pool* outer_;
};

}  // namespace ferrite::cuda
