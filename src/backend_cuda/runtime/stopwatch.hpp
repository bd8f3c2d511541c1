// How long work takes on the GPU: what the autotuner measures with, and what it tells the stopwatches of
// others.
#pragma once

#include <functional>

#include "backend_cuda/runtime/device_context.hpp"

namespace ferrite::cuda {

/// Median seconds of what `run` gives to the compute stream, by device events. Runs it some 5 to 60 times and
/// waits for it: never inside a capture.
double median_seconds(DeviceContext& context, const std::function<void()>& run);

/// Starts anew the innermost Stopwatch<Cuda> that runs on this thread, if there is one: what it saw so far
/// was not the op but the choice of its plan.
void restart_stopwatch() noexcept;

}  // namespace ferrite::cuda
