// Contexts, events, the CUDA side of the pool, and copies on and between GPUs.
#include "backend_cuda/runtime/device_context.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/outside_capture.hpp"
#include "backend_cuda/runtime/pool_trace.hpp"
#include "backend_cuda/runtime/staging.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
namespace {

class CudaSegments final : public SegmentSource {
 public:
  explicit CudaSegments(const DeviceContext& context) : context_(context), device_(context.index()) {}

  void* allocate(std::size_t bytes) override {
    const DeviceGuard guard(device_);
    const OutsideCapture outside;
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    check(status, OpScope::current());
    return data;
  }
  /// cudaFree waits for the device, so work that still uses the segment is done before. There is nobody to
  /// report errors to: a lost context or a process at its end.
  void free(void* segment) noexcept override try {
    const DeviceGuard guard(device_);
    const OutsideCapture outside;
    if (cudaFree(segment) != cudaSuccess) static_cast<void>(cudaGetLastError());
  } catch (const std::exception&) {
  }
  std::size_t free_bytes() override {
    const DeviceGuard guard(device_);
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess) return free;
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  void fill(void* data, std::size_t bytes, int value) override {
    const DeviceGuard guard(device_);
    check(cudaMemsetAsync(data, value, bytes, context_.stream()), "poison");
  }

 private:
  const DeviceContext& context_;
  const int device_;
};

class CudaStreamEvents final : public StreamEvents {
 public:
  CudaStreamEvents(int device, EventPool& events) : device_(device), events_(events) {}

  void* record(void* stream) noexcept override try {
    const DeviceGuard guard(device_);
    cudaEvent_t event = events_.take();
    if (cudaEventRecord(event, static_cast<cudaStream_t>(stream)) == cudaSuccess) return event;
    static_cast<void>(cudaGetLastError());
    events_.give_back(event);
    return nullptr;
  } catch (const std::exception&) {  // no event to be had: wait here instead
    static_cast<void>(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
    return nullptr;
  }
  bool passed(void* event) noexcept override {
    const OutsideCapture outside;
    if (cudaEventQuery(static_cast<cudaEvent_t>(event)) == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    events_.give_back(static_cast<cudaEvent_t>(event));
    return true;
  }
  void wait(void* event) noexcept override {
    const OutsideCapture outside;
    static_cast<void>(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
    events_.give_back(static_cast<cudaEvent_t>(event));
  }

 private:
  const int device_;
  EventPool& events_;
};

thread_local const Lane* current_lane = nullptr;

cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cuda");
  return stream;
}

/// Between the priorities of side streams, of which some go before it and some after.
cudaStream_t make_compute_stream() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cuda");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, (least + greatest) / 2), "cuda");
  return stream;
}

/// Everything of a context lives until the process ends, the parts of its pool too.
Pool& make_pool(DeviceContext& context, const PoolOptions& options) {
  auto* const segments = new CudaSegments(context);
  auto* const stream_events = new CudaStreamEvents(context.index(), context.events());
  return *Pool::make(context.device(), *segments, *stream_events, options).release();
}

}  // namespace

cudaEvent_t EventPool::take() {
  {
    const std::lock_guard guard(lock_);
    if (!free_.empty()) {
      cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
    free_.reserve(++made_);  // so that giving back never allocates
  }
  const DeviceGuard guard(device_);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cuda");
  return event;
}

void EventPool::give_back(cudaEvent_t event) noexcept {
  const std::lock_guard guard(lock_);
  free_.push_back(event);
}

LaneScope::LaneScope(const Lane* lane) noexcept : outer_(std::exchange(current_lane, lane)) {}
LaneScope::~LaneScope() { current_lane = outer_; }

DeviceContext& DeviceContext::of(int index) {
  constexpr int most = 64;
  static std::array<std::atomic<DeviceContext*>, most> contexts{};
  if (index >= 0 && index < most) {
    if (DeviceContext* context = contexts[static_cast<std::size_t>(index)].load(std::memory_order_acquire)) {
      return *context;
    }
  }
  const int count = std::min(device_count(), most);
  if (count == 0) throw DeviceError(fmt::format("[cuda] cuda:{}: {}", index, why_no_device()));
  if (index < 0 || index >= count) {
    throw DeviceError(fmt::format("[cuda] cuda:{}: this machine has {} GPU{}, the index must be {}", index,
                                  count, count == 1 ? "" : "s",
                                  count == 1 ? "0" : fmt::format("0 to {}", count - 1)));
  }
  static std::mutex making;
  const std::lock_guard guard(making);
  auto& slot = contexts[static_cast<std::size_t>(index)];
  if (!slot.load(std::memory_order_relaxed)) {
    const DeviceGuard device(index);
    const CompileScope starting(fmt::format("start CUDA on cuda:{}", index));
    slot.store(new DeviceContext(index, PoolOptions::from_environment()), std::memory_order_release);
    trace_memory_if_asked(*slot.load(std::memory_order_relaxed));
  }
  return *slot.load(std::memory_order_relaxed);
}

DeviceContext::DeviceContext(int index, const PoolOptions& options)
    : index_(index),
      properties_([index] {
        cudaDeviceProp properties;
        check(cudaGetDeviceProperties(&properties, index), "cuda");
        return properties;
      }()),
      stream_(make_compute_stream()),
      copy_stream_(make_stream()),
      events_(index),
      common_pool_(make_pool(*this, options)),
      active_pool_(&common_pool_),
      staging_(*new Staging(*this)),
      peers_tried_(static_cast<std::size_t>(device_count())) {}

const Lane* DeviceContext::lane() const noexcept {
  return current_lane && current_lane->context == this ? current_lane : nullptr;
}

void DeviceContext::refuse_aside(std::string_view op) const {
  if (!lane()) return;
  throw BackendError(fmt::format(
      "[{}] inside work aside: shares memory with the other work of the GPU; do it before or after", op));
}

bool DeviceContext::is_capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream(), &status), OpScope::current());
  return status != cudaStreamCaptureStatusNone;
}

void DeviceContext::synchronize() {
  const DeviceGuard guard(index_);
  if (is_capturing())
    throw BackendError(
        "[synchronize] waiting for the GPU: cannot be captured into a CUDA graph; do it before or "
        "after the capture");
  std::vector<cudaStream_t> streams;
  {
    const std::lock_guard lanes(lanes_lock_);
    streams = lanes_;
  }
  streams.insert(streams.end(), {stream_, copy_stream_});
  for (const cudaStream_t stream : streams) check(cudaStreamSynchronize(stream), "synchronize");
}

void DeviceContext::add_lane(cudaStream_t stream) {
  const std::lock_guard guard(lanes_lock_);
  lanes_.push_back(stream);
}
void DeviceContext::remove_lane(cudaStream_t stream) noexcept {
  const std::lock_guard guard(lanes_lock_);
  std::erase(lanes_, stream);
}

void DeviceContext::copy_from_host(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  staging_.upload(static_cast<std::byte*>(target), static_cast<const std::byte*>(source), bytes);
}

void DeviceContext::copy_to_host(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  staging_.download(static_cast<std::byte*>(target), static_cast<const std::byte*>(source), bytes);
}

void DeviceContext::copy_on_device(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const DeviceGuard guard(index_);
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
}

void DeviceContext::copy_from_device(void* target, DeviceContext& source_device, const void* source,
                                     std::size_t bytes) {
  if (&source_device == this) return copy_on_device(target, source, bytes);
  if (bytes == 0) return;
  const auto wait = [](DeviceContext& waiting, DeviceContext& awaited) {
    const PooledEvent reached(awaited.events_);
    check(cudaEventRecord(reached.get(), awaited.stream()), "copy");
    check(cudaStreamWaitEvent(waiting.stream(), reached.get(), 0), "copy");
  };
  const DeviceGuard guard(index_);
  enable_peer_access(source_device.index_);
  wait(*this, source_device);  // until the source is written
  check(cudaMemcpyPeerAsync(target, index_, source, source_device.index_, bytes, stream()), "copy");
  wait(source_device, *this);  // before the source is written again
}

/// With peer access the copy goes over NVLink or PCIe; without it, CUDA copies through the host.
void DeviceContext::enable_peer_access(int peer) {
  {
    const std::lock_guard guard(peer_lock_);
    if (peers_tried_[static_cast<std::size_t>(peer)]) return;
    peers_tried_[static_cast<std::size_t>(peer)] = true;
  }
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, index_, peer), "copy");
  if (possible && cudaDeviceEnablePeerAccess(peer, 0) != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace ferrite::cuda
