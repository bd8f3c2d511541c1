#pragma once

#include <cuda_runtime_api.h>

/// Keeps the stream busy.
void wait_on(cudaStream_t stream, double seconds);
