// The device side of RingPlan: rows that bulk copies bring into shared memory ahead of their use, and blocks
// of a cluster that share one row.
#pragma once

#include "backend_cuda/kit/ptx.cuh"
#include "backend_cuda/kit/rows.cuh"

namespace ferrite::cuda {

/// The shared memory of a block besides its rows.
struct RingControl {
  static constexpr int slot_bytes = 32;
  ptx::Barrier filled[most_ring_teams][most_ring_stages], emptied[most_ring_teams][most_ring_stages];
  ptx::Barrier told[2];  // by the other blocks of the cluster; two in turn, see RowTeam
  alignas(slot_bytes) unsigned char from_part[2][most_ring_parts][slot_bytes];
};
static_assert(sizeof(RingControl) + 2 * (most_row_threads / 32) * 32 <= 2816, "rows.cpp leaves this much");

/// A team that may be one block of a cluster.
class RingTeam : public RowTeam {
 public:
  __device__ __forceinline__ RingTeam(int threads_shift, int parts, RingControl& control)
      : RowTeam(threads_shift), control_(control), parts_(parts) {}

  /// Which of the row's blocks this is.
  __device__ __forceinline__ int part() const { return static_cast<int>(blockIdx.x) & (parts_ - 1); }
  __device__ __forceinline__ bool is_first_thread() const { return lane() == 0 && part() == 0; }

  template <class V>
  __device__ __forceinline__ V among_warps(V found) {
    found = RowTeam::among_warps(found);
    if (parts_ == 1) return found;
    static_assert(sizeof(V) <= slot_bytes && alignof(V) <= 8);
    union Message {
      V value;
      std::uint64_t words[divide_up(sizeof(V), 8)];
      __device__ Message() {}
    } message;
    constexpr std::uint32_t bytes = sizeof message.words;
    const int turn = told_ & 1;
    ptx::Barrier& told = control_.told[turn];
    if (lane() == 0) told.expect(static_cast<std::uint32_t>(parts_) * bytes);
    if (lane() < parts_) {  // one thread for each block, its own too
      message.value = found;
      const std::uint32_t slot =
          ptx::address_in_block(ptx::shared_address(control_.from_part[turn][part()]), lane());
      const std::uint32_t barrier = ptx::address_in_block(told.address(), lane());
#pragma unroll
      for (std::uint32_t i = 0; i < bytes / 8; ++i) ptx::store_async(slot + 8 * i, message.words[i], barrier);
    }
    told.wait(static_cast<std::uint32_t>(told_ >> 1) & 1u);
    ++told_;
    found = *reinterpret_cast<const V*>(control_.from_part[turn][lane() & (parts_ - 1)]);
    found.across(parts_);
    return found;
  }
  template <class V>
  __device__ __forceinline__ V total(V found) {
    return among_warps(in_warp(found));
  }

 private:
  RingControl& control_;
  int parts_, told_ = 0;
};

template <int inputs>
struct RingArgs {
  RingShape shape;
  RowPlace in[inputs];
};

/// The rows of one team, one after the other: while (rows.next()). A thread sees the same packs in every pass
/// over a row, and the same elements of every row.
///
/// held: packs that a thread loads from shared memory once for all passes. If these are all its packs, the
/// bulk copies may bring the next row there at once.
template <class T, int lanes, int inputs, int held = 0>
class Ring {
 public:
  /// `memory`: the block's dynamic shared memory.
  __device__ __forceinline__ Ring(const RingArgs<inputs>& args, unsigned char* memory)
      : args_(args),
        control_(control_block()),
        team_(args.shape.threads_shift, args.shape.parts, control_block()) {
    const RingShape& shape = args.shape;
    const auto teams = static_cast<int>(blockDim.x >> shape.threads_shift);
    const int team_bytes = shape.stages * inputs * shape.stage_bytes;
    stages_ = memory + team_.index() * team_bytes;
    beside_ = memory + teams * team_bytes;
    jump_ = static_cast<int>(gridDim.x / static_cast<unsigned>(shape.parts)) * teams;
    row_ = static_cast<std::int64_t>(blockIdx.x / static_cast<unsigned>(shape.parts)) * teams + team_.index();
    if (team_.lane() == 0) {
      for (int i = 0; i < shape.stages; ++i) {
        filled(i).init(1);
        emptied(i).init(team_.threads() / 32);
      }
      if (shape.parts > 1) {
        control_.told[0].init(1);
        control_.told[1].init(1);
      }
      ptx::make_barriers_visible();
    }
    // No block may write to another of its cluster before that one is ready.
    if (shape.parts > 1)
      ptx::synchronize_cluster();
    else
      __syncthreads();
    wait_for_earlier_kernels();
    if (team_.lane() == 0)
      for (int i = 0; i < shape.stages; ++i) fetch(i, row_ + i * std::int64_t{jump_});
    row_ -= jump_;
  }
  /// No block may end while others can still write to it.
  __device__ __forceinline__ ~Ring() {
    if (args_.shape.parts > 1) ptx::synchronize_cluster();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  __device__ __forceinline__ bool next() {
    if (in_use_) release_stage();
    row_ += jump_;
    if (row_ >= args_.shape.rows) return false;
    filled(stage_).wait(parity_);
    in_use_ = true;
    if constexpr (held > 0) {
      const int packs = part_length() / lanes;
#pragma unroll
      for (int i = 0; i < held; ++i) {
        const int at = team_.lane() + i * team_.threads();
#pragma unroll
        for (int k = 0; k < inputs; ++k)
          if (at < packs) held_[i][k] = read(k, at);
      }
      if (packs <= held * team_.threads()) release_stage();
    }
    return true;
  }
  __device__ __forceinline__ RingTeam& team() { return team_; }
  __device__ __forceinline__ bool active() const { return true; }
  __device__ __forceinline__ std::int64_t row() const { return row_; }
  __device__ __forceinline__ std::int64_t row_ahead() const {
    const std::int64_t ahead = row_ + jump_, last = args_.shape.rows - 1;
    return ahead < last ? ahead : last;
  }
  /// The elements of a row that this block has.
  __device__ __forceinline__ int part_begin() const { return team_.part() * args_.shape.part_length; }
  __device__ __forceinline__ int part_length() const {
    const int left = args_.shape.length - part_begin();
    return left < args_.shape.part_length ? left : args_.shape.part_length;
  }
  /// The shared memory that RingNeeds asked for, of all teams of the block.
  __device__ __forceinline__ void* beside() const { return beside_; }

  /// As Rows::pass, with one chunk.
  template <class F>
  __device__ __forceinline__ void pass(F&& f) {
    const int packs = part_length() / lanes, first = part_begin() / lanes, step = team_.threads();
    f([&](auto&& g) {
      each_item([&](int, int at, const auto&... x) { g(first + at, at, x...); });
      // Several packs at a time: all loads start before the first is used.
      constexpr int batch = 4 / inputs;
      int at = team_.lane() + held * step;
      for (; at + (batch - 1) * step < packs; at += batch * step) {
        RawPack<T, lanes> raw[batch][inputs];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
#pragma unroll
          for (int k = 0; k < inputs; ++k) raw[i][k] = read(k, at + i * step);
        }
#pragma unroll
        for (int i = 0; i < batch; ++i) visit(g, first + at + i * step, at + i * step, raw[i]);
      }
      for (; at < packs; at += step) visit(g, first + at, at);
    });
  }
  /// A thread's first packs, all of them where RingNeeds::most_packs says so: g(item, slot, x...), unrolled,
  /// so that the item is a constant.
  template <int items = held, class G>
  __device__ __forceinline__ void each_item(G&& g) {
    static_assert(items >= held);
    const int packs = part_length() / lanes;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const int at = team_.lane() + i * team_.threads();
      if (i < held) {
#pragma unroll
        for (int k = 0; k < inputs; ++k) held_[i][k].forget_wide();
        if (at < packs) visit(g, i, at, held_[i]);
      } else {
        if (at < packs) visit(g, i, at);
      }
    }
  }

 private:
  static __device__ __forceinline__ RingControl& control_block() {
    __shared__ RingControl control;
    return control;
  }
  __device__ __forceinline__ ptx::Barrier& filled(int stage) { return control_.filled[team_.index()][stage]; }
  __device__ __forceinline__ ptx::Barrier& emptied(int stage) {
    return control_.emptied[team_.index()][stage];
  }
  __device__ __forceinline__ unsigned char* stage(int index, int input) const {
    return stages_ + (index * inputs + input) * args_.shape.stage_bytes;
  }
  __device__ __forceinline__ const T* source(std::int64_t row, int input) const {
    return static_cast<const T*>(args_.in[input].data) + row * args_.in[input].stride + part_begin();
  }
  /// How far the start of a row is past a multiple of 16 bytes; it has the same offset in its stage.
  __device__ __forceinline__ static std::uint32_t offset_of(const T* data) {
    return lanes > 1 ? 0u : static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data) & 15u);
  }
  /// When all threads have left the row in the current stage, the stage takes another row; then it is the
  /// next stage's turn.
  __device__ __forceinline__ void release_stage() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) emptied(stage_).arrive();
    if (team_.lane() == 0) {
      emptied(stage_).wait(parity_);
      fetch(stage_, row_ + args_.shape.stages * std::int64_t{jump_});
    }
    in_use_ = false;
    if (++stage_ == args_.shape.stages) {
      stage_ = 0;
      parity_ ^= 1;
    }
  }
  /// If there is such a row. By one thread of the team.
  __device__ __forceinline__ void fetch(int index, std::int64_t row) {
    if (row >= args_.shape.rows) return;
    const T* data[inputs];
    std::uint32_t bytes[inputs], all = 0;
#pragma unroll
    for (int k = 0; k < inputs; ++k) {
      data[k] = source(row, k);
      bytes[k] = (offset_of(data[k]) + static_cast<std::uint32_t>(part_length() * sizeof(T)) + 15u) & ~15u;
      all += bytes[k];
    }
    filled(index).expect(all);
#pragma unroll
    for (int k = 0; k < inputs; ++k)
      filled(index).copy_to_shared(
          stage(index, k), reinterpret_cast<const unsigned char*>(data[k]) - offset_of(data[k]), bytes[k]);
  }
  __device__ __forceinline__ RawPack<T, lanes> read(int input, int at) const {
    const unsigned char* const begin = stage(stage_, input) + offset_of(source(row_, input));
    return reinterpret_cast<const RawPack<T, lanes>*>(begin)[at];
  }
  template <class G>
  __device__ __forceinline__ void visit(G&& g, int index, int at) {
    RawPack<T, lanes> raw[inputs];
#pragma unroll
    for (int k = 0; k < inputs; ++k) raw[k] = read(k, at);
    visit(g, index, at, raw);
  }
  template <class G>
  __device__ __forceinline__ static void visit(G&& g, int index, int at,
                                               const RawPack<T, lanes> (&x)[inputs]) {
    if constexpr (inputs == 1)
      g(index, at, x[0].wide());
    else
      g(index, at, x[0].wide(), x[1].wide());
  }

  const RingArgs<inputs>& args_;
  RingControl& control_;
  RingTeam team_;
  unsigned char *stages_, *beside_;
  std::int64_t row_;
  int jump_, stage_ = 0;
  bool in_use_ = false;
  std::uint32_t parity_ = 0;
  RawPack<T, lanes> held_[held > 0 ? held : 1][inputs];
};

}  // namespace ferrite::cuda
