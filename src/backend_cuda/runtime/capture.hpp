// For kernels inside a capture: what replays add to their random streams.
#pragma once

#include <cstdint>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// For every op that draws random numbers: the address, on the device, of a number to add to the stream of
/// its key. nullptr outside a capture, and for keys that no generator handed out during it: those are the
/// same in every step.
const std::uint64_t* stream_offset(const Call& call, RandomKey key);

/// offsets[i] += strides[i], after the work given so far.
void advance_offsets(DeviceContext& context, std::uint64_t* offsets, const std::uint64_t* strides,
                     std::size_t count);

}  // namespace ferrite::cuda
