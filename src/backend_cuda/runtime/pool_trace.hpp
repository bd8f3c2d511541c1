// The event log of a pool as a trace file. It needs no GPU, and CI tests it on the host.
#pragma once

#include <chrono>
#include <filesystem>
#include <span>
#include <vector>

#include "backend_cuda/runtime/pool.hpp"

namespace ferrite::cuda {

class DeviceContext;

struct PoolTimeline {
  Device device;
  std::chrono::nanoseconds start;  // of the log, on the clock that all timelines of a file share
  std::vector<PoolEvent> events;
  std::size_t in_use = 0, reserved = 0;  // after the last event
};

/// `start` is when log_events was called.
FERRITE_API PoolTimeline timeline_of(const Pool& pool, Device device, std::chrono::nanoseconds start);

/// A process for each pool, with counters and one row of marks for each kind of event. Throws IoError.
FERRITE_API void write_pool_trace(const std::filesystem::path& path, std::span<const PoolTimeline> pools);

/// If FERRITE_CUDA_MEMORY_TRACE names a file: logs the pool of this GPU, which was just made, and writes the
/// logs of all GPUs when the program ends.
void trace_memory_if_asked(DeviceContext& context);
bool is_memory_traced();

}  // namespace ferrite::cuda
