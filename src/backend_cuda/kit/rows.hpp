// How ops along rows (softmax, norms, cross entropy) are laid out on the GPU. There are two ways:
//
//   RowPlan   A team of threads (part of a warp up to a block) holds a row in registers, one row per team.
//             Many teams fit on a multiprocessor; while one waits for memory, the others work. Rows that are
//             too long even for the ring are read again in every pass, chunk by chunk.
//   RingPlan  A block, or a cluster of blocks, has a row in shared memory and works on it while bulk copies
//             bring the next ones. For rows that do not fit in registers, and for ops with sums over all
//             rows. Needs Hopper: on older GPUs, rows that do not fit in registers are read chunk by chunk.
#pragma once

#include <initializer_list>
#include <optional>

#include "ferrite/cuda/call.hpp"

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
/// x along its last axis as `dtype`; copies only if necessary.
RowArray rows_of(Cuda& cuda, const Array& x, DType dtype);
inline RowArray rows_of(Cuda& cuda, const Array& x) { return rows_of(cuda, x, x.dtype()); }

/// Elements in a pack, which a thread reads at once: 16 bytes of them, or 1 if some rows that are read or
/// written are not aligned.
int row_lanes(DType dtype, std::int64_t length, std::initializer_list<RowPlace> places);

/// Packs that a thread holds.
constexpr int row_items(int lanes, std::size_t element_bytes) {
  if (lanes > 1) return 4;
  return element_bytes == 8 ? 8 : 16;
}
inline constexpr int most_row_threads = 512;  // of a team, and of a block

struct RowsShape {
  std::int64_t rows, packs;          // packs of a row
  std::int32_t chunks, chunk_packs;  // 1 chunk: the row stays in registers
  std::int32_t threads_shift;        // of a team
};

class RowPlan {
 public:
  RowPlan(const Call& call, DType dtype, std::int64_t rows, std::int64_t length, int lanes);

  const RowsShape& shape() const { return shape_; }
  int lanes() const { return lanes_; }
  bool is_resident() const { return shape_.chunks == 1; }

  template <class Args>
  void launch(void (*kernel)(Args), Args args) const {
    void* parameters[] = {&args};
    launch_untyped(reinterpret_cast<const void*>(kernel), parameters);
  }

 private:
  void launch_untyped(const void* kernel, void** parameters) const;

  const Call* call_;
  int lanes_, block_;
  RowsShape shape_{};
};

inline constexpr int most_ring_stages = 4, most_ring_parts = 8;
inline constexpr int most_ring_teams = most_row_threads / 32;

struct RingShape {
  std::int64_t rows;
  std::int32_t length, part_length;  // elements of a row, and of what a block has of it (the last has less)
  std::int32_t parts;                // blocks of a row: the cluster
  std::int32_t threads_shift;        // of a team; a block of a cluster is one team
  std::int32_t stages, stage_bytes;  // rows in flight per team; bytes of one input
};

/// What a kernel needs from the ring.
struct RingNeeds {
  int inputs;
  int bytes_per_element = 0;  // of shared memory beside the ring, for each element of a block's part
  int most_packs = 0;         // that a thread may have; 0: any number
  int blocks = 1;  // of clusters on a multiprocessor: one works while another waits for its cluster
};

class RingPlan {
 public:
  /// Nothing if rows are too long for the shared memory of the largest cluster, and before Hopper.
  static std::optional<RingPlan> make(const Call& call, DType dtype, std::int64_t rows, std::int64_t length,
                                      int lanes, const RingNeeds& needs);

  const RingShape& shape() const { return shape_; }
  int lanes() const { return lanes_; }
  /// Blocks that share no row, or clusters of them.
  std::int64_t crews() const { return blocks_ / shape_.parts; }

  /// As many blocks as run at once; before launch() and crews().
  template <class Args>
  void fit(void (*kernel)(Args)) {
    fit_untyped(reinterpret_cast<const void*>(kernel));
  }
  template <class Args>
  void launch(void (*kernel)(Args), Args args) const {
    void* parameters[] = {&args};
    launch_untyped(reinterpret_cast<const void*>(kernel), parameters);
  }

 private:
  RingPlan() = default;
  bool try_parts(std::int64_t parts, int blocks, std::int64_t element_bytes, const RingNeeds& needs);
  void fit_untyped(const void* kernel);
  void launch_untyped(const void* kernel, void** parameters) const;

  const Call* call_;
  int lanes_ = 1, teams_ = 1;  // teams of a block
  std::int64_t blocks_ = 0, shared_bytes_ = 0;
  RingShape shape_{};
};

/// In registers if rows fit there, else in a ring, else chunk by chunk and element by element.
class RowsOrRingPlan {
 public:
  RowsOrRingPlan(const Call& call, DType dtype, std::int64_t rows, std::int64_t length, int lanes,
                 const RingNeeds& needs)
      : rows_(call, dtype, rows, length, lanes) {
    if (rows_.is_resident()) return;
    ring_ = RingPlan::make(call, dtype, rows, length, lanes, needs);
    if (!ring_) rows_ = RowPlan(call, dtype, rows, length, 1);
  }
  int lanes() const { return ring_ ? ring_->lanes() : rows_.lanes(); }

  /// Calls on_rows.template operator()<lanes, resident>(RowPlan), or on_ring.template operator()<lanes>(
  /// RingPlan&). T: the type of the elements.
  template <class T, class OnRows, class OnRing>
  void visit(OnRows&& on_rows, OnRing&& on_ring) {
    constexpr int many = 16 / static_cast<int>(sizeof(T));
    if (ring_) {
      if (lanes() > 1)
        on_ring.template operator()<many>(*ring_);
      else
        on_ring.template operator()<1>(*ring_);
    } else if (!rows_.is_resident()) {
      on_rows.template operator()<1, false>(rows_);
    } else if (lanes() > 1) {
      on_rows.template operator()<many, true>(rows_);
    } else {
      on_rows.template operator()<1, true>(rows_);
    }
  }

 private:
  RowPlan rows_;
  std::optional<RingPlan> ring_;
};

}  // namespace ferrite::cuda
