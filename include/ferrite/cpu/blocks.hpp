// Blocks: a few thousand elements, dense and of one type, that stay in the first-level cache. Kernels are
// written only for blocks. This header turns strided arrays of any dtype into blocks and back.
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

/// Room for one block of any dtype.
struct BlockBuffer {
  alignas(64) std::byte bytes[block_size * 8];
};

/// Elementwise `convert`; the same dtype is a plain copy. Source and target must not overlap.
FERRITE_API void convert_block(DType from, const void* source, DType to, void* target, std::int64_t n);
/// n copies of the one element at `value`.
FERRITE_API void fill_block(DType dtype, const void* value, void* target, std::int64_t n);
/// target[i] += source[i]; of compute dtypes.
FERRITE_API void add_block(DType dtype, const void* source, void* target, std::int64_t n);

/// A small part of a loop nest: how many steps along each axis. The last axis is the innermost.
struct Box {
  int rank = 0;
  std::int64_t extent[max_rank] = {};

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= extent[i];
    return n;
  }
  /// True if an operand of these strides is a dense block within the box.
  bool is_dense(const std::int64_t* stride) const {
    std::int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (extent[i] == 1) continue;
      if (stride[i] != expected) return false;
      expected *= extent[i];
    }
    return true;
  }
};

/// Copies between a strided box and a dense block, elements of `element_size` bytes.
void gather_box(std::size_t element_size, const Box& box, const void* source, const std::int64_t* stride,
                void* block);
void scatter_box(std::size_t element_size, const Box& box, const void* block, void* target,
                 const std::int64_t* stride);
/// Copies from a strided box to another.
void copy_box(std::size_t element_size, const Box& box, const void* source, const std::int64_t* source_stride,
              void* target, const std::int64_t* target_stride);

/// The box as a dense block of dtype `wanted`: the elements themselves if possible, else a copy in `buffer`
/// (through `scratch` if both the layout and the dtype differ).
const void* load_box(const Box& box, DType dtype, const void* source, const std::int64_t* stride,
                     DType wanted, BlockBuffer& buffer, BlockBuffer& scratch);
/// Writes a block of dtype `given` into a strided box of `dtype`.
void store_box(const Box& box, DType given, const void* block, DType dtype, void* target,
               const std::int64_t* stride, BlockBuffer& scratch);

/// Walks over a loop nest in boxes of at most block_size elements. The boxes depend only on the nest.
class BoxWalk {
 public:
  /// Reorders the axes of the nest if every operand can then be read in the order of its memory.
  explicit BoxWalk(const LoopNest& nest);

  std::int64_t count() const { return count_; }
  /// The number of boxes in a chunk of parallel work.
  std::int64_t boxes_per_chunk() const;
  const LoopNest& nest() const { return nest_; }

  /// Goes to box `index` in [0, count()).
  void seek(std::int64_t index);
  void next();
  const Box& box() const { return box_; }
  /// Where operand k of the current box begins, in elements.
  std::int64_t offset(int k) const;

 private:
  void choose_tile();
  void clip(int axis);

  LoopNest nest_;
  std::int64_t full_[max_rank] = {};   // extents of a whole box
  std::int64_t begin_[max_rank] = {};  // of the current box
  Box box_;
  std::int64_t count_ = 1;
  bool tiled_ = false;  // operands run through memory in different orders: boxes are tiles of two axes
};

}  // namespace ferrite::cpu
