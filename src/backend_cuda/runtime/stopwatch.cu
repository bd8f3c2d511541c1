// Device events around several runs. A kernel of 2 us ends before the next one is launched, so the stream is
// first blocked until all runs are queued; otherwise the host would be timed.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend_cuda/runtime/stopwatch.hpp"

namespace ferrite::cuda {
namespace {

__global__ void wait_kernel(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

class TimingEvent {
 public:
  TimingEvent() { check(cudaEventCreate(&event_), "autotune"); }
  ~TimingEvent() { static_cast<void>(cudaEventDestroy(event_)); }
  TimingEvent(const TimingEvent&) = delete;
  TimingEvent& operator=(const TimingEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double median_seconds(DeviceContext& context, const std::function<void()>& run) {
  const TimingEvent begin, end;
  const auto seconds_of = [&](int runs, bool held) {
    if (held)
      wait_kernel<<<1, 1, 0, context.stream()>>>(10'000 +
                                                 14'000LL * runs);  // cuBLASLt takes up to 12 us to launch
    check(cudaEventRecord(begin.get(), context.stream()), "autotune");
    for (int i = 0; i < runs; ++i) run();
    check(cudaEventRecord(end.get(), context.stream()), "autotune");
    check(cudaEventSynchronize(end.get()), "autotune");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "autotune");
    return 1e-3 * milliseconds / runs;
  };
  run();  // loads the kernel
  const double rough = std::max(seconds_of(1, false), 1e-6);
  const bool is_short = rough < 100e-6;
  const int runs = is_short ? 8 : 1;
  const int samples = static_cast<int>(std::clamp(20e-3 / (rough * runs), 3.0, 7.0));
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) seconds.push_back(seconds_of(runs, is_short));
  std::nth_element(seconds.begin(), seconds.begin() + samples / 2, seconds.end());
  return seconds[static_cast<std::size_t>(samples / 2)];
}

}  // namespace ferrite::cuda
