// The device side of rows.hpp: teams of threads that walk over rows, and what they find out together.
#pragma once

#include <cooperative_groups.h>

#include "backend_cuda/device.cuh"
#include "backend_cuda/rows.hpp"

namespace ferrite::cuda {

template <class C>
__device__ __forceinline__ C from_lane_across(C x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}

/// e^x: CUDA's for results of 32 and 64 bits. For those of 16 bits the special-function unit's, whose error
/// of 2^-22 (and |x| 2^-24) is far below theirs, with a third of the instructions.
template <class T>
__device__ __forceinline__ Compute<T> exp_for(Compute<T> x) {
  if constexpr (is_16_bit<T>) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
  } else {
    return std::exp(x);
  }
}

template <class C>
__device__ __forceinline__ bool is_finite(C x) {
  return std::abs(x) <= std::numeric_limits<C>::max();
}

/// Sums that a team takes together. Butterflies: every lane gets the same bits.
template <class C, int n>
struct Sums {
  C of[n] = {};

  /// Over `width` neighbouring lanes, a power of two.
  __device__ __forceinline__ void across(int width) {
    for (int distance = width / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int k = 0; k < n; ++k) of[k] += from_lane_across(of[k], distance);
    }
  }
};

/// The largest x, and the sum of e^(x - largest) (of e^x where the largest is infinite: then it is 0,
/// infinity or NaN, as the sum in exact arithmetic is). T: the type of the elements.
template <class T>
struct MaxAndSum {
  using C = Compute<T>;
  C top = -std::numeric_limits<C>::infinity(), sum = 0;

  __device__ __forceinline__ static C shift_for(C top) { return is_finite(top) ? top : C{0}; }
  __device__ __forceinline__ void raise(C higher) {
    sum *= exp_for<T>(top - shift_for(higher));
    top = higher;
  }
  __device__ __forceinline__ void across(int width) {
    C highest = top;
    for (int distance = width / 2; distance > 0; distance /= 2)
      highest = fmax(highest, from_lane_across(highest, distance));
    raise(highest);
    for (int distance = width / 2; distance > 0; distance /= 2) sum += from_lane_across(sum, distance);
  }
};

/// The threads of one row. All threads of all blocks of a row (and all rows of a block) ask for the same
/// totals in the same order.
class RowTeam {
 public:
  __device__ __forceinline__ RowTeam(int threads_shift, int parts)
      : threads_(1 << threads_shift), parts_(parts) {}

  __device__ __forceinline__ int lane() const { return threadIdx.x & (threads_ - 1); }
  __device__ __forceinline__ int threads() const { return threads_; }
  /// Which of the row's blocks this is.
  __device__ __forceinline__ int part() const { return blockIdx.x & (parts_ - 1); }
  __device__ __forceinline__ bool is_first_thread() const { return lane() == 0 && part() == 0; }

  /// What all threads of the team found, put together in a fixed order. V has across(width).
  template <class V>
  __device__ __forceinline__ V total(V found) {
    static_assert(sizeof(V) <= slot_bytes);
    // Two sets of slots in turn: a set is written again only behind a barrier that all its readers passed.
    __shared__ alignas(slot_bytes) unsigned char warps[2][16][slot_bytes], blocks[2][8][slot_bytes];
    found.across(threads_ < 32 ? threads_ : 32);
    if (threads_ > 32) {
      V* const slots = reinterpret_cast<V*>(warps[turn_]);
      const int warp = threadIdx.x / 32, count = threads_ / 32;
      if (threadIdx.x % 32 == 0) slots[warp] = found;
      __syncthreads();
      found = slots[(warp & -count) + (threadIdx.x & (count - 1))];
      found.across(count);
    }
    if (parts_ > 1) {
      const auto cluster = cooperative_groups::this_cluster();
      V* const slots = reinterpret_cast<V*>(blocks[turn_]);
      if (static_cast<int>(threadIdx.x) < parts_)
        *cluster.map_shared_rank(slots + part(), threadIdx.x) = found;
      cluster.sync();
      found = slots[threadIdx.x & (parts_ - 1)];
      found.across(parts_);
    }
    turn_ ^= 1;
    return found;
  }

 private:
  static constexpr int slot_bytes = 32;
  int threads_, parts_, turn_ = 0;
};

template <class C, int lanes>
struct Wide {
  C of[lanes];
};

template <class T, int lanes>
__device__ __forceinline__ Wide<Compute<T>, lanes> widen(const Pack<T, lanes>& pack) {
  Wide<Compute<T>, lanes> wide;
#pragma unroll
  for (int j = 0; j < lanes; ++j) wide.of[j] = convert_to<Compute<T>>(pack.lane[j]);
  return wide;
}

/// A pack as it is held in registers: 16-bit elements on their own would take twice as many.
template <class T, int lanes>
struct RawPack {
  static constexpr bool in_words = lanes * sizeof(T) == 16;
  std::conditional_t<in_words, Pack<std::uint32_t, 4>, Pack<T, lanes>> bits;

  __device__ __forceinline__ Wide<Compute<T>, lanes> wide() const {
    return widen(__builtin_bit_cast(Pack<T, lanes>, bits));
  }
  /// Makes the compiler forget wide(), which it would otherwise keep in still more registers.
  __device__ __forceinline__ void forget_wide() {
    if constexpr (is_16_bit<T> && in_words) {
#pragma unroll
      for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(bits.lane[j]));
    }
  }
};

/// Rounds, two elements with one instruction where there is one.
template <class T, int lanes>
__device__ __forceinline__ Pack<T, lanes> narrow(const Wide<Compute<T>, lanes>& wide) {
  Pack<T, lanes> pack;
  if constexpr (is_16_bit<T> && lanes % 2 == 0) {
#pragma unroll
    for (int j = 0; j < lanes; j += 2) {
      if constexpr (std::is_same_v<T, __half>) {
        const __half2 pair = __floats2half2_rn(wide.of[j], wide.of[j + 1]);
        pack.lane[j] = pair.x;
        pack.lane[j + 1] = pair.y;
      } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(wide.of[j], wide.of[j + 1]);
        pack.lane[j] = pair.x;
        pack.lane[j + 1] = pair.y;
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < lanes; ++j) pack.lane[j] = convert_to<T>(wide.of[j]);
  }
  return pack;
}

template <class T, int lanes>
__device__ __forceinline__ void write_pack(T* row, std::int64_t index, Wide<Compute<T>, lanes> x, bool add) {
  Pack<T, lanes>* const out = reinterpret_cast<Pack<T, lanes>*>(row) + index;
  if (add) {
    const auto old = widen(*out);
#pragma unroll
    for (int j = 0; j < lanes; ++j) x.of[j] += old.of[j];
  }
  *out = narrow<T, lanes>(x);
}

template <int inputs>
struct RowsArgs {
  RowsShape shape;
  RowPlace in[inputs];
  bool last_row_first = false;
};

/// The rows of one team, one after the other: for (Rows<...> rows(args); rows.next();). Passes read the row
/// from registers or, where it is too long for them, from memory again. All threads of a block go through the
/// same number of rows; where active() is false the row is one behind the end: it has no packs. `resident`:
/// rows are known to stay in registers.
template <class T, int lanes, int inputs, bool resident = false>
class Rows {
 public:
  using C = Compute<T>;
  static constexpr int items = row_items(lanes, sizeof(T));

  __device__ __forceinline__ explicit Rows(const RowsArgs<inputs>& args)
      : args_(args), team_(args.shape.threads_shift, args.shape.parts) {
    const int teams = blockDim.x >> args.shape.threads_shift;
    begin_ = team_.part() * team_.threads() + team_.lane();
    jump_ = static_cast<std::int64_t>(gridDim.x / args.shape.parts) * teams;
    index_ = static_cast<std::int64_t>(blockIdx.x / args.shape.parts) * teams +
             (threadIdx.x >> args.shape.threads_shift);
    fetch(index_, 0);
    index_ -= jump_;
    // No block may write to another of its cluster before that one has started.
    if (args.shape.parts > 1) cooperative_groups::this_cluster().sync();
  }

  /// To the next row; false: there is none for any team of the block.
  __device__ __forceinline__ bool next() {
    index_ += jump_;
    if (index_ - (threadIdx.x >> args_.shape.threads_shift) >= args_.shape.rows) return false;
    if (resident || args_.shape.chunks == 1) advance(index_ + jump_, 0);
    return true;
  }
  __device__ __forceinline__ RowTeam& team() { return team_; }
  __device__ __forceinline__ bool active() const { return index_ < args_.shape.rows; }
  __device__ __forceinline__ std::int64_t row() const { return row_at(index_); }
  /// The row that the next next() goes to; behind the end some other row.
  __device__ __forceinline__ std::int64_t row_ahead() const {
    const std::int64_t ahead = index_ + jump_, last = args_.shape.rows - 1;
    return row_at(ahead < last ? ahead : last);
  }

  /// f(each): each(g) calls g(item, pack index in the row, x...) with a Wide of each input, for every
  /// pack of this thread in the chunk. `last`: no other pass over this row follows.
  template <bool last, class F>
  __device__ __forceinline__ void pass(F&& f) {
    const int chunks = resident ? 1 : args_.shape.chunks;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (chunks > 1) {
        const bool more = chunk + 1 < chunks;
        advance(more || !last ? index_ : index_ + jump_, more ? chunk + 1 : 0);
      }
#pragma unroll
      for (int k = 0; k < inputs; ++k) {
#pragma unroll
        for (int i = 0; i < items; ++i) now_[k][i].forget_wide();
      }
      const std::int64_t first = static_cast<std::int64_t>(chunk) * args_.shape.chunk_packs;
      const int available = packs_in(index_, chunk);
      f([&](auto&& g) {
#pragma unroll
        for (int i = 0; i < items; ++i) {
          const int at = begin_ + i * step();
          if (at >= available) continue;
          if constexpr (inputs == 1)
            g(i, first + at, now_[0][i].wide());
          else
            g(i, first + at, now_[0][i].wide(), now_[1][i].wide());
        }
      });
    }
  }

 private:
  __device__ __forceinline__ int step() const { return args_.shape.parts << args_.shape.threads_shift; }
  __device__ __forceinline__ std::int64_t row_at(std::int64_t index) const {
    return args_.last_row_first ? args_.shape.rows - 1 - index : index;
  }
  __device__ __forceinline__ int packs_in(std::int64_t index, int chunk) const {
    const RowsShape& shape = args_.shape;
    if (index >= shape.rows) return 0;
    const std::int64_t left = shape.packs - static_cast<std::int64_t>(chunk) * shape.chunk_packs;
    return static_cast<int>(left < shape.chunk_packs ? left : shape.chunk_packs);
  }
  /// Takes over what was fetched and fetches what comes next.
  __device__ __forceinline__ void advance(std::int64_t index, int chunk) {
#pragma unroll
    for (int k = 0; k < inputs; ++k) {
#pragma unroll
      for (int i = 0; i < items; ++i) now_[k][i] = next_[k][i];
    }
    fetch(index, chunk);
  }
  __device__ __forceinline__ void fetch(std::int64_t index, int chunk) {
    const int available = packs_in(index, chunk);
    const std::int64_t row = row_at(index),
                       first = static_cast<std::int64_t>(chunk) * args_.shape.chunk_packs;
#pragma unroll
    for (int k = 0; k < inputs; ++k) {
      const T* const data = static_cast<const T*>(args_.in[k].data) + row * args_.in[k].stride;
      const auto* const packs = reinterpret_cast<const RawPack<T, lanes>*>(data) + first + begin_;
#pragma unroll
      for (int i = 0; i < items; ++i)
        if (begin_ + i * step() < available) next_[k][i] = packs[i * step()];
    }
  }

  const RowsArgs<inputs>& args_;
  RowTeam team_;
  int begin_;
  std::int64_t index_, jump_;
  RawPack<T, lanes> now_[inputs][items], next_[inputs][items];
};

}  // namespace ferrite::cuda
