#include "cli/bench/timing.hpp"

#include <algorithm>
#include <chrono>

namespace ferrite::cli::bench {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// `batch(n)` gives the seconds of n calls.
Times measure(const std::function<double(int)>& batch, const Timing& timing) {
  double start = now();
  for (int i = 0; i < timing.warmup && (i == 0 || now() - start < timing.max_seconds); ++i) batch(1);
  // One that something else held up would look like a long call: it is tried again, unless it is long.
  const auto attempt = [&](int calls) {
    const double first = batch(calls);
    return first < batch_seconds || first > 20 * batch_seconds ? first : std::min(first, batch(calls));
  };
  int calls = 1;
  double trial = attempt(1);
  while (trial < batch_seconds && calls < most_calls) trial = attempt(calls *= 2);
  std::vector<double> times;
  if (trial >= timing.max_seconds) times.push_back(trial / calls);  // one that long tells enough
  start = now();
  while (static_cast<int>(times.size()) < timing.iterations &&
         (times.empty() || (trial < timing.max_seconds && now() - start < timing.max_seconds)))
    times.push_back(batch(calls) / calls);
  return {median(times), *std::min_element(times.begin(), times.end()), static_cast<int>(times.size()),
          calls};
}

}  // namespace

Cuda* gpu_of(AnyBackend& backend) {
  if (Cuda* const cuda = backend.get_if<Cuda>()) return cuda;
  Lazy<Cuda>* const lazy = backend.get_if<Lazy<Cuda>>();
  return lazy ? &lazy->inner() : nullptr;
}

Times time_calls(AnyBackend& backend, const std::function<void()>& call, const Timing& timing, Clock clock) {
  Cuda* const gpu = clock == Clock::device ? gpu_of(backend) : nullptr;
  const auto on_device = [&](int calls) {
    // Empties the L2 cache, and keeps the GPU busy while the host gets ahead of it.
    zeros(*gpu, {static_cast<std::int64_t>(beyond_cache) / 4});
    Stopwatch<Cuda> watch(*gpu);
    for (int i = 0; i < calls; ++i) call();
    return 1e-9 * static_cast<double>(watch.stop().duration);
  };
  const auto by_wall = [&](int calls) {
    backend.synchronize();
    const double start = now();
    for (int i = 0; i < calls; ++i) call();
    backend.synchronize();
    return now() - start;
  };
  return gpu ? measure(on_device, timing) : measure(by_wall, timing);
}

Times time_calls(const std::function<void()>& call, const Timing& timing) {
  return measure(
      [&](int calls) {
        const double start = now();
        for (int i = 0; i < calls; ++i) call();
        return now() - start;
      },
      timing);
}

int input_sets(double bytes, bool on_gpu) {
  const double wanted = bytes > 0 ? beyond_cache / bytes : 1;
  return static_cast<int>(std::clamp(wanted, 1.0, on_gpu ? 32.0 : 2.0));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace ferrite::cli::bench
