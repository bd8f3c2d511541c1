// CudaMemoryLog: what the memory pool of a GPU does, as a timeline. It shows how much is in use at every
// moment, and which op takes and frees memory. FERRITE_CUDA_MEMORY_TRACE=FILE does the same for a whole
// program, without any change to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>

#include "ferrite/backend/cuda.hpp"

namespace ferrite {

class FERRITE_API CudaMemoryLog {
 public:
  static constexpr std::size_t usual_events = 200'000;

  /// Logs from now on, and keeps the last `most_events`, some 50 bytes each. A GPU has one log: a new one
  /// ends the one before. Throws ValueError under FERRITE_CUDA_MEMORY_TRACE.
  explicit CudaMemoryLog(Cuda& cuda, std::size_t most_events = usual_events);
  /// Ends the log.
  ~CudaMemoryLog();
  CudaMemoryLog(const CudaMemoryLog&) = delete;
  CudaMemoryLog& operator=(const CudaMemoryLog&) = delete;

  /// Writes the log so far as a trace for ui.perfetto.dev or chrome://tracing: the bytes in use and cached
  /// as counters, and a mark with op and bytes for each allocation, each free, each segment taken from the
  /// GPU or given back, and each time that memory ran out. Times are the host's. Throws IoError, and
  /// ValueError if a newer log has ended this one.
  void write_trace(const std::filesystem::path& path) const;

 private:
  Cuda cuda_;
  std::chrono::nanoseconds start_;
};

}  // namespace ferrite
