// The only thread pool of the process. The caller fixes the chunks of work, never the thread count, so any
// number of threads gives the same bits. (OpenBLAS has threads of its own: see Products in backend/cpu.hpp.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// How many threads share a job, including the calling one. Initially FERRITE_NUM_THREADS, else the number of
/// hardware threads. Throws ValueError if that variable is not a number from 1 to 256.
FERRITE_API int num_threads();
/// Takes effect with the next job. Throws ValueError unless 1 <= n <= 256.
FERRITE_API void set_num_threads(int n);

namespace detail {
using ChunkFunction = void (*)(void* context, std::int64_t chunk);
FERRITE_API void run_chunks(std::int64_t chunks, ChunkFunction function, void* context);
}  // namespace detail

/// Calls f(chunk) once for every chunk in [0, chunks), in any order and on any thread, and returns when all
/// are done. Nested calls, and calls while the pool serves another thread, run all chunks in order on the
/// calling thread. If a chunk throws, the chunks not yet begun are skipped and the first exception is
/// rethrown.
template <class F>
void parallel_for(std::int64_t chunks, F&& f) {
  if (chunks == 1) return static_cast<void>(f(std::int64_t{0}));
  using Function = std::remove_reference_t<F>;
  detail::run_chunks(
      chunks, [](void* context, std::int64_t chunk) { (*static_cast<Function*>(context))(chunk); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

/// Calls f(begin, end) for [0, n) cut into ranges of `grain` (the last one may be shorter).
template <class F>
void parallel_ranges(std::int64_t n, std::int64_t grain, F&& f) {
  grain = std::max<std::int64_t>(grain, 1);
  if (n <= grain) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  parallel_for((n - 1) / grain + 1, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * grain;
    f(begin, std::min(n, begin + grain));
  });
}

}  // namespace ferrite
