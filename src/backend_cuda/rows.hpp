// How ops along rows (softmax, norms, cross entropy) are laid out on the GPU. A team of threads takes a row
// at a time and keeps it in registers: part of a warp, a block, or, for long rows, a cluster of blocks.
// Blocks stay for many rows and fetch the next one while they work on this one, which keeps memory busy.
#pragma once

#include <initializer_list>

#include "backend_cuda/arrays.hpp"

namespace ferrite::cuda {

/// Where rows lie in memory.
struct RowPlace {
  const void* data;
  std::int64_t stride;  // elements
};

/// Equally spaced rows of dense elements.
struct RowArray {
  Array array;
  std::int64_t count, length, stride;
  RowPlace place() const { return {array.data(), stride}; }
};
/// x along its last axis as `dtype`, by a copy where there is no other way.
RowArray rows_of(Cuda& cuda, const Array& x, DType dtype);
inline RowArray rows_of(Cuda& cuda, const Array& x) { return rows_of(cuda, x, x.dtype()); }

/// What a kernel is told. A pack is what a thread reads at once: 16 bytes, or one element.
struct RowsShape {
  std::int64_t rows, length, packs;   // elements and packs of a row
  std::int32_t chunks, chunk_packs;   // 1 chunk: the row stays in registers; else every pass reads it again
  std::int32_t threads_shift, parts;  // threads of a block for one row; blocks for one row: the cluster
};

/// Packs of a chunk that a thread holds.
constexpr int row_items(int lanes, std::size_t element_bytes) {
  if (lanes > 1) return 4;
  return element_bytes == 8 ? 8 : 16;
}

/// 16 bytes of elements, or 1 where some rows of what is read or written are not aligned.
int row_lanes(DType dtype, std::int64_t length, std::initializer_list<RowPlace> places);

/// The shape and the launch of one row kernel.
class RowPlan {
 public:
  static constexpr int most_threads = 512, most_parts = 8;

  /// In packs of `lanes` elements. Kernels that read rows once gain nothing from a cluster: `parts` 1.
  RowPlan(const Call& call, DType dtype, std::int64_t rows, std::int64_t length, int lanes,
          int parts = most_parts);

  const RowsShape& shape() const { return shape_; }
  int lanes() const { return lanes_; }
  /// Rows stay in registers.
  bool is_resident() const { return shape_.chunks == 1; }
  int teams_in_block() const { return block_ >> shape_.threads_shift; }
  /// Packs of a resident row that one block holds; 0 if not resident.
  std::int64_t slots() const { return slots_; }

  /// As many blocks as run at once. `threads_per_sm` is what the kernel's __launch_bounds__ promises.
  template <class Args>
  void fit(void (*kernel)(Args), int threads_per_sm, std::int64_t shared_bytes = 0) {
    fit_untyped(reinterpret_cast<const void*>(kernel), threads_per_sm, shared_bytes);
  }
  /// Blocks that share no row; after fit.
  std::int64_t crews() const { return blocks_ / shape_.parts; }

  template <class Args>
  void launch(void (*kernel)(Args), Args args) const {
    void* parameters[] = {&args};
    launch_untyped(reinterpret_cast<const void*>(kernel), parameters);
  }

 private:
  void fit_untyped(const void* kernel, int threads_per_sm, std::int64_t shared_bytes);
  void launch_untyped(const void* kernel, void** parameters) const;

  const Call* call_;
  int lanes_, block_;
  std::int64_t slots_ = 0, blocks_ = 0, shared_bytes_ = 0;
  RowsShape shape_{};
};

}  // namespace ferrite::cuda
