// How a call is timed. src/cli/bench/peers.py times the peers in the same way; change both together.
#pragma once

#include <functional>
#include <vector>

#include "ferrite/stacks.hpp"

namespace ferrite::cli::bench {

struct Timing {
  int warmup = 2;          // calls before the first measured one
  int iterations = 20;     // measured batches, at most
  double max_seconds = 1;  // no batch begins after this
};

/// Of one call.
struct Times {
  double seconds = 0;  // median
  double min_seconds = 0;
  int iterations = 0;  // batches that were measured
  int calls = 0;       // in each of them
};

/// device: by the clock of the GPU, from the first to the last call, where there is one. wall: by the host's
/// clock, until the backend is idle.
enum class Clock : std::uint8_t { device, wall };

inline constexpr double batch_seconds = 5e-3;  // short calls are repeated until a batch takes this long
inline constexpr int most_calls = 1024;
inline constexpr double beyond_cache = 256e6;  // bytes, more than the caches of GPUs and most CPUs

/// The GPU below a backend; nullptr if it has none that Stopwatch can time.
Cuda* gpu_of(AnyBackend& backend);

Times time_calls(AnyBackend& backend, const std::function<void()>& call, const Timing& timing, Clock clock);
/// The same on the host alone.
Times time_calls(const std::function<void()>& call, const Timing& timing);

/// How many sets of inputs take turns, so that a GPU finds them cold. A CPU keeps small ones in its cache.
int input_sets(double bytes, bool on_gpu);

/// Not of an empty list.
double median(std::vector<double> values);

}  // namespace ferrite::cli::bench
