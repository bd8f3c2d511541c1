// Time on the GPU: the stopwatch of Profiled, and what the device itself reaches.
#include <array>
#include <chrono>
#include <mutex>
#include <utility>

#include "backend_cuda/arrays.hpp"
#include "ferrite/backend/profiled.hpp"
#include "ferrite/ops/matmul.hpp"

namespace ferrite {
namespace {

/// Events with timing, kept for reuse: making one takes microseconds.
class TimingEvents {
 public:
  static TimingEvents& instance() {
    static TimingEvents* const events = new TimingEvents;
    return *events;
  }
  void* take() {
    {
      const std::lock_guard guard(mutex_);
      if (!free_.empty()) {
        void* event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreate(&event), "stopwatch");
    return event;
  }
  void give_back(void* event) {
    const std::lock_guard guard(mutex_);
    free_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> free_;
};

double seconds_between(cudaEvent_t begin, cudaEvent_t end) {
  cuda::check(cudaEventSynchronize(end), "stopwatch");
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, begin, end), "stopwatch");
  return milliseconds * 1e-3;
}

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

}  // namespace

Stopwatch<Cuda>::Stopwatch(Cuda& cuda)
    : context_(&cuda.context()),
      begin_(TimingEvents::instance().take()),
      end_(TimingEvents::instance().take()),
      start_(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count()) {
  cuda::check(cudaEventRecord(static_cast<cudaEvent_t>(begin_), context_->stream()), "stopwatch");
}

Stopwatch<Cuda>::Stopwatch(Stopwatch&& other) noexcept
    : context_(other.context_),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)),
      start_(other.start_) {}

Stopwatch<Cuda>::~Stopwatch() {
  if (!begin_) return;
  TimingEvents::instance().give_back(begin_);
  TimingEvents::instance().give_back(end_);
}

TimeSpan Stopwatch<Cuda>::stop() {
  const auto end = static_cast<cudaEvent_t>(end_);
  cuda::check(cudaEventRecord(end, context_->stream()), "stopwatch");
  const double seconds = seconds_between(static_cast<cudaEvent_t>(begin_), end);
  return {start_, static_cast<std::int64_t>(seconds * 1e9)};
}

Ceilings Cuda::ceilings() const {
  static std::mutex measuring;
  static std::array<Ceilings, 64> known;
  const std::lock_guard guard(measuring);
  Ceilings& result = known[static_cast<std::size_t>(index_)];
  if (result.bytes_per_second > 0) return result;
  Cuda cuda(index_);
  const cuda::Call call(cuda, "ceilings");
  {
    constexpr std::size_t bytes = std::size_t{1} << 30;
    const cuda::Scratch<std::byte> from(call, bytes), to(call, bytes);
    result.bytes_per_second =
        2.0 * bytes / fastest(cuda, [&] { context_->copy_on_device(to.data(), from.data(), bytes); });
  }
  constexpr std::int64_t n = 8192;
  const Meta meta{{n, n}, DType::bf16};
  const Array a = cuda.allocate(meta), b = cuda.allocate(meta);
  Array c = cuda.allocate(meta);
  for (const Array& x : {a, b})
    cuda::check(cudaMemsetAsync(x.data(), 0x3c, meta.bytes(), context_->stream()), "ceilings");
  const Array* in[] = {&a, &b};
  result.flops_per_second =
      2.0 * n * n * n / fastest(cuda, [&] { cuda.run(op::Matmul{}, Ins(in, 2), Outs(&c, 1)); });
  return result;
}

}  // namespace ferrite
