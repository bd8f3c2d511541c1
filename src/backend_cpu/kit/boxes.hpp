// Boxes: small parts of a strided array, as blocks and back. For the kernels of the library, which walk over
// any layout in the order of its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ferrite/cpu/blocks.hpp"

namespace ferrite::cpu {

/// Room for one block of any dtype.
struct BlockBuffer {
  alignas(64) std::byte bytes[block_size * 8];
};

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
