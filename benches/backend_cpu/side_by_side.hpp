// Two ways to compute the same thing, timed in turn in one run: a ratio of medians, which a busy machine or a
// changing clock rate disturbs far less than two separate measurements.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace ferrite::bench {

inline constexpr int rounds = 11;

template <class F>
double seconds(F&& f, int repetitions) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repetitions; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repetitions;
}

inline double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

/// Reports the median time of `ours`, and as counters its shortest time, the median of `theirs` and the
/// ratio theirs / ours (above 1: ours is faster). Between the two is a pause, because a library's threads may
/// spin for a while after their work. Register with ->Iterations(rounds)->UseManualTime().
template <class Ours, class Theirs>
void side_by_side(benchmark::State& state, Ours&& ours, Theirs&& theirs) {
  const auto settle = [] { std::this_thread::sleep_for(std::chrono::milliseconds(40)); };
  theirs();
  ours();
  const double once = std::min(seconds(ours, 1), seconds(theirs, 1));
  const int repetitions = std::max(1, static_cast<int>(0.04 / once));
  std::vector<double> our_times, their_times;
  for (auto _ : state) {
    settle();
    their_times.push_back(seconds(theirs, repetitions));
    settle();
    our_times.push_back(seconds(ours, repetitions));
    state.SetIterationTime(our_times.back());
  }
  state.counters["ours_us"] = 1e6 * median(our_times);
  state.counters["best_us"] = 1e6 * *std::min_element(our_times.begin(), our_times.end());
  state.counters["theirs_us"] = 1e6 * median(their_times);
  state.counters["ratio"] = median(their_times) / median(our_times);
}

}  // namespace ferrite::bench
