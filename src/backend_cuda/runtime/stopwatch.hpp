// Measures work on the GPU for the autotuner, and informs the stopwatches of others.
#pragma once

#include <functional>

#include "backend_cuda/runtime/device_context.hpp"

namespace ferrite::cuda {

/// Median seconds of the work that `run` gives to the compute stream, by device events. Runs it some 5 to 60
/// times and waits for it: never inside a capture.
double median_seconds(DeviceContext& context, const std::function<void()>& run);

/// Restarts the innermost Stopwatch<Cuda> that runs on this thread, if there is one: what it measured so far
/// was the choice of a plan, not the op.
void restart_stopwatch() noexcept;
/// Whether this thread measures something with a Stopwatch<Cuda>.
bool stopwatch_runs() noexcept;

}  // namespace ferrite::cuda
