// Time on the GPU: the stopwatch of Profiled, the ceilings of the device, and its facts for reports.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "backend_cuda/runtime/outside_capture.hpp"
#include "backend_cuda/runtime/stopwatch.hpp"
#include "decorators/profiled/launch_note.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/decorators/profiled.hpp"
#include "ferrite/ops/matmul.hpp"

namespace ferrite {
namespace {

constexpr std::string_view name = "stopwatch";

std::int64_t host_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Timing events of one GPU, kept for reuse (making one takes microseconds), and their times on the host's
/// clock. Any thread; never destroyed.
class DeviceClock {
 public:
  static DeviceClock& of(cuda::DeviceContext& context) {
    static std::array<std::atomic<DeviceClock*>, 64> clocks{};
    auto& clock = clocks.at(static_cast<std::size_t>(context.index()));
    if (DeviceClock* const known = clock.load(std::memory_order_acquire)) return *known;
    static std::mutex making;
    const std::lock_guard guard(making);
    if (!clock.load(std::memory_order_relaxed))
      clock.store(new DeviceClock(context), std::memory_order_release);
    return *clock.load(std::memory_order_relaxed);
  }

  /// A mark after the work given to the GPU so far.
  cudaEvent_t record() {
    const cuda::DeviceGuard device(context_.index());
    const cudaEvent_t event = take();
    const cudaError_t status = cudaEventRecord(event, context_.stream());
    if (status != cudaSuccess) give_back(event);
    cuda::check(status, name);
    return event;
  }
  void give_back(cudaEvent_t event) noexcept {
    const std::lock_guard guard(mutex_);
    free_.push_back(event);
  }

  /// Waits for `end`, which is replaced by another event if the clock keeps it.
  TimeSpan between(cudaEvent_t begin, cudaEvent_t& end) {
    const cuda::OutsideCapture outside;
    const std::int64_t duration = elapsed(begin, end);
    const std::lock_guard guard(mutex_);
    // Events give milliseconds in 24 bits: relative to an event of a second ago, accurate to 0.1 us.
    const std::int64_t since = elapsed(anchor_, end), end_time = anchor_time_ + since;
    if (since > 1'000'000'000) {
      std::swap(anchor_, end);
      anchor_time_ = end_time;
    }
    return {end_time - duration, duration};
  }

 private:
  explicit DeviceClock(cuda::DeviceContext& context) : context_(context), anchor_(record()) {
    cuda::check(cudaEventSynchronize(anchor_), name);
    anchor_time_ = host_now();
  }

  cudaEvent_t take() {
    {
      const std::lock_guard guard(mutex_);
      if (!free_.empty()) {
        const cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
      free_.reserve(++made_);  // so that giving back never allocates
    }
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreate(&event), name);
    return event;
  }
  /// Nanoseconds.
  static std::int64_t elapsed(cudaEvent_t from, cudaEvent_t to) {
    float milliseconds = 0;
    cudaError_t status = cudaEventElapsedTime(&milliseconds, from, to);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      cuda::check(cudaEventSynchronize(to), name);
      status = cudaEventElapsedTime(&milliseconds, from, to);
    }
    cuda::check(status, name);
    return std::llround(1e6 * milliseconds);
  }

  cuda::DeviceContext& context_;
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
  std::size_t made_ = 0;
  cudaEvent_t anchor_;
  std::int64_t anchor_time_ = 0;  // of the host
};

class PendingEvents final : public PendingTime {
 public:
  PendingEvents(DeviceClock& clock, cudaEvent_t begin) : clock_(clock), begin_(begin), end_(clock.record()) {}
  ~PendingEvents() override {
    clock_.give_back(begin_);
    clock_.give_back(end_);
  }
  TimeSpan get() override { return clock_.between(begin_, end_); }

 private:
  DeviceClock& clock_;
  cudaEvent_t begin_, end_;
};

thread_local Stopwatch<Cuda>* running = nullptr;

/// Seconds of the fastest of some runs of f.
template <class F>
double fastest(Cuda& cuda, F&& f) {
  double best = 1e9;
  for (int i = 0; i < 8; ++i) {
    Stopwatch<Cuda> watch(cuda);
    f();
    best = std::min(best, static_cast<double>(watch.stop().duration) * 1e-9);
  }
  return best;
}

/// Not from the pool, whose peak is the user's.
class MemoryToMeasureWith final : public Buffer {
 public:
  static std::shared_ptr<Buffer> allocate(Device device, std::size_t bytes) {
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    cuda::check(status, "ceilings");
    return std::make_shared<MemoryToMeasureWith>(data, bytes, device);
  }
  using Buffer::Buffer;
  ~MemoryToMeasureWith() override { static_cast<void>(cudaFree(data())); }
};

}  // namespace

void cuda::restart_stopwatch() noexcept {
  if (!running || !running->begin_) return;
  const auto begin = static_cast<cudaEvent_t>(running->begin_);
  if (cudaEventRecord(begin, running->context_.stream()) != cudaSuccess)  // the op will meet it too
    static_cast<void>(cudaGetLastError());
}

bool cuda::stopwatch_runs() noexcept { return running != nullptr; }

Stopwatch<Cuda>::Stopwatch(Cuda& cuda) : context_(cuda.context()), outer_(running) {
  const cuda::OpScope scope(name);
  if (!context_.is_capturing()) begin_ = DeviceClock::of(context_).record();
  detail::take_launch_note();  // of a call that failed
  running = this;
}

Stopwatch<Cuda>::~Stopwatch() {
  running = outer_;
  if (begin_) DeviceClock::of(context_).give_back(static_cast<cudaEvent_t>(begin_));
}

std::unique_ptr<PendingTime> Stopwatch<Cuda>::stop_later() {
  if (!begin_) return nullptr;
  auto pending = std::make_unique<PendingEvents>(DeviceClock::of(context_), static_cast<cudaEvent_t>(begin_));
  begin_ = nullptr;
  return pending;
}

TimeSpan Stopwatch<Cuda>::stop() {
  if (const auto pending = stop_later()) return pending->get();
  throw BackendError("[stopwatch] inside a capture: nothing runs there; time the replay");
}

Ceilings Cuda::ceilings() const {
  static std::mutex measuring;
  static std::array<Ceilings, 64> known;
  const std::lock_guard guard(measuring);
  Ceilings& result = known[static_cast<std::size_t>(index_)];
  if (result.bytes_per_second > 0) return result;
  Cuda cuda(index_);
  const cuda::Call call(cuda, "ceilings");
  if (context_->is_capturing()) return {};
  constexpr std::size_t bytes = std::size_t{1} << 30;
  const std::shared_ptr<Buffer> memory = MemoryToMeasureWith::allocate(device(), 2 * bytes);
  if (!memory) return {};
  auto* const data = static_cast<std::byte*>(memory->data());
  // 0x3c3c is 0.011 in bf16.
  cuda::check(cudaMemsetAsync(data, 0x3c, 2 * bytes, context_->stream()), "ceilings");
  const double copy = fastest(cuda, [&] { context_->copy_on_device(data + bytes, data, bytes); });

  constexpr std::int64_t n = 8192;
  const auto matrix = [&](std::int64_t i) {
    return Array(memory, Layout{{n, n}, {n, 1}, i * n * n}, DType::bf16);
  };
  const Array a = matrix(0), b = matrix(1);
  Array c = matrix(2);
  const Array* in[] = {&a, &b};
  const double product = fastest(cuda, [&] { run(cuda, op::Matmul{}, Ins(in, 2), Outs(&c, 1)); });
  result = {2.0 * bytes / copy, 2.0 * n * n * n / product};
  return result;
}

BackendFacts Cuda::facts() const {
  const CudaDeviceInfo gpu = cuda::describe_device(index_);
  const cuda::PoolStats pool = context_->common_pool().pool_stats();
  const auto number = [](auto value) { return static_cast<double>(value); };
  BackendFacts facts;
  facts.device_name = gpu.name;
  facts.device = {{"compute_capability", gpu.compute_major + gpu.compute_minor / 10.0},
                  {"memory_bytes", number(gpu.total_bytes)},
                  {"free_bytes", number(gpu.free_bytes)},
                  {"multiprocessors", number(gpu.multiprocessors)},
                  {"clock_mhz", number(gpu.clock_mhz)},
                  {"bandwidth_bytes_per_second", gpu.bandwidth()},
                  {"driver_cuda_version", number(gpu.driver_version)},
                  {"runtime_cuda_version", number(gpu.runtime_version)}};
  facts.pool = {{"reserved_bytes", number(pool.reserved)},
                {"parked_bytes", number(pool.parked)},
                {"largest_free_bytes", number(pool.largest_free)},
                {"live_blocks", number(pool.live_blocks)},
                {"segments", number(pool.segments)},
                {"segment_allocations", number(pool.segment_allocations)},
                {"fragmentation", pool.fragmentation()}};
  if (pool.limit < cuda::max_block_bytes) facts.pool.emplace_back("limit_bytes", number(pool.limit));
  facts.compile_times = cuda::compile_times();
  return facts;
}

}  // namespace ferrite
