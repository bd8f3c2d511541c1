// How long work takes on the GPU, for the autotuner.
#pragma once

#include <functional>

#include "backend_cuda/device_context.hpp"

namespace ferrite::cuda {

/// Median seconds of what `run` gives to the compute stream, by device events. Runs it some 5 to 60 times and
/// waits for it: never inside a capture.
double median_seconds(DeviceContext& context, const std::function<void()>& run);

}  // namespace ferrite::cuda
