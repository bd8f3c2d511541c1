// Blocks: a few thousand elements, dense and of one type, that stay in the first-level cache. Kernels are
// written only for blocks. This header has their loops and conversions; ferrite/cpu/rows.hpp turns arrays of
// any layout and dtype into rows, of which blocks are parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ferrite/core/array.hpp"

// Tells the compiler that iterations do not depend on each other: an output may be an input, but only at the
// same index.
#if defined(__clang__)
#define FERRITE_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define FERRITE_VECTORIZE _Pragma("GCC ivdep")
#endif

namespace ferrite::cpu {

inline constexpr std::int64_t block_size = 2048;
/// Elements per chunk of parallel work; fewer are not worth a second thread.
inline constexpr std::int64_t chunk_size = 32768;

/// True for results much larger than the second-level caches of the threads at work, if the processor can
/// store around the caches: the library's kernels then do.
FERRITE_API bool exceeds_caches(std::int64_t bytes);
/// Vectors of any instruction set may be stored around the caches from here on.
inline bool at_cache_line(const void* place) { return reinterpret_cast<std::uintptr_t>(place) % 64 == 0; }

/// For the scope in which a thread stores around the caches: at its end all of it is visible to whoever waits
/// for this thread.
class Streamed {
 public:
  explicit Streamed(bool active) : active_(active) {}
  ~Streamed() {
    if (active_) order_stores();
  }
  explicit operator bool() const { return active_; }

 private:
  FERRITE_API static void order_stores();

  bool active_;
};

/// Calls f.template operator()<E>() with the unsigned integer of this many bytes: enough to move elements.
template <class F>
decltype(auto) visit_size(std::size_t element_size, F&& f) {
  switch (element_size) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

/// Calls f(i) for i in [0, n), inlined as vector code if the body allows it. A body with calls is marked
/// scalar, because clang warns about a vector loop that it cannot make.
enum class Loop { vector, scalar };
template <Loop loop = Loop::vector, class F>
FERRITE_INLINE void for_each_index(std::int64_t n, F&& f) {
  if constexpr (loop == Loop::vector) {
    FERRITE_VECTORIZE
    for (std::int64_t i = 0; i < n; ++i) f(i);
  } else {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
}

/// Elementwise `convert`; the same dtype is a plain copy. Source and target must not overlap.
FERRITE_API void convert_block(DType from, const void* source, DType to, void* target, std::int64_t n);
/// n copies of the one element at `value`.
FERRITE_API void fill_block(DType dtype, const void* value, void* target, std::int64_t n);
/// target[i] += source[i]; of compute dtypes.
FERRITE_API void add_block(DType dtype, const void* source, void* target, std::int64_t n);

}  // namespace ferrite::cpu
