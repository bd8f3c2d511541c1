// The device side of rows.hpp: teams of threads, their totals, and rows held in registers.
#pragma once

#include <utility>

#include "backend_cuda/kit/rows.hpp"
#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda {

template <class C>
__device__ __forceinline__ C from_lane_across(C x, int distance) {
  return __shfl_xor_sync(0xffffffffu, x, distance);
}

inline constexpr float log2_of_e = 1.44269504f;
/// 2^x by the special-function unit.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// e^x: CUDA's for results of 32 and 64 bits. For 16-bit results the special-function unit's, whose error of
/// 2^-22 (and |x| 2^-24) is far below their precision, with a third of the instructions.
template <class T>
__device__ __forceinline__ Compute<T> exp_for(Compute<T> x) {
  if constexpr (is_16_bit<T>) {
    return fast_exp2(x * log2_of_e);
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
    if (higher != top && sum != 0) sum *= exp_for<T>(top - shift_for(higher));
    top = higher;
  }
  /// Adds elements: each as in Rows::pass.
  template <class Each>
  __device__ __forceinline__ void add(Each&& each) {
    raise_to_all(each);
    const C shift = shift_for(top);
    each([&](auto, int, const auto& x) {
#pragma unroll
      for (int j = 0; j < x.count; ++j) sum += exp_for<T>(x.of[j] - shift);
    });
  }
  template <class Each>
  __device__ __forceinline__ void raise_to_all(Each&& each) {
    C highest = top;
    each([&](auto, int, const auto& x) {
#pragma unroll
      for (int j = 0; j < x.count; ++j) highest = fmax(highest, x.of[j]);
    });
    raise(highest);
  }
  __device__ __forceinline__ void across(int width) {
    C highest = top;
    for (int distance = width / 2; distance > 0; distance /= 2)
      highest = fmax(highest, from_lane_across(highest, distance));
    raise(highest);
    for (int distance = width / 2; distance > 0; distance /= 2) sum += from_lane_across(sum, distance);
  }
};

/// Count, mean, and the sum of squared distances from it, merged without cancellation.
template <class C>
struct Moments {
  C count = 0, mean = 0, squares = 0;

  /// By Chan, Golub and LeVeque.
  __device__ __forceinline__ void merge(const Moments& other) {
    const C both = count + other.count;
    if (both == 0) return;
    const C distance = other.mean - mean, share = other.count / both;
    mean += distance * share;
    squares += other.squares + distance * distance * count * share;
    count = both;
  }
  /// The mean of all first, then the squared distances of the means from it: one division for all.
  __device__ __forceinline__ void across(int width) {
    Sums<C, 2> both{{count, count * mean}};
    both.across(width);
    const C all = both.of[0] > 0 ? both.of[1] / both.of[0] : C{0}, distance = mean - all;
    Sums<C, 1> distances{{squares + count * distance * distance}};
    distances.across(width);
    *this = {both.of[0], all, distances.of[0]};
  }
};

/// The threads of one row, a power of two. They all request the same totals in the same order.
class RowTeam {
 public:
  __device__ __forceinline__ explicit RowTeam(int threads_shift)
      : threads_(1 << threads_shift), index_(static_cast<int>(threadIdx.x >> threads_shift)) {}

  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) & (threads_ - 1); }
  __device__ __forceinline__ int threads() const { return threads_; }
  /// Which of the block's teams this is.
  __device__ __forceinline__ int index() const { return index_; }
  __device__ __forceinline__ bool is_first_thread() const { return lane() == 0; }

  /// Uses a separate barrier: 0 is that of __syncthreads, where other teams may be waiting. The barrier
  /// numbers are constants: with a number known only at run time, a block reserves all 16, and a
  /// multiprocessor, which has 64, holds only four blocks.
  __device__ __forceinline__ void sync() const {
    if (threads_ <= 32) return __syncwarp();
    switch (index_) {
      case 0:
        return sync_at<1>();
      case 1:
        return sync_at<2>();
      case 2:
        return sync_at<3>();
      case 3:
        return sync_at<4>();
      case 4:
        return sync_at<5>();
      case 5:
        return sync_at<6>();
      case 6:
        return sync_at<7>();
      default:
        return sync_at<8>();
    }
  }
  /// The total over the threads of the team that share a warp. V has across(width).
  template <class V>
  __device__ __forceinline__ V in_warp(V found) const {
    found.across(threads_ < 32 ? threads_ : 32);
    return found;
  }
  /// The total over its warps, each with the same value in all its threads.
  template <class V>
  __device__ __forceinline__ V among_warps(V found) {
    static_assert(sizeof(V) <= slot_bytes);
    if (threads_ <= 32) return found;
    unsigned char* const slots = warp_slots(turn_);
    turn_ ^= 1;
    const int warp = static_cast<int>(threadIdx.x) / 32, count = threads_ / 32;
    if (threadIdx.x % 32 == 0) *reinterpret_cast<V*>(slots + warp * slot_bytes) = found;
    sync();
    const int other = (warp & -count) + (static_cast<int>(threadIdx.x) & (count - 1));
    found = *reinterpret_cast<const V*>(slots + other * slot_bytes);
    found.across(count);
    return found;
  }
  /// The total over all threads of the team, merged in a fixed order.
  template <class V>
  __device__ __forceinline__ V total(V found) {
    return among_warps(in_warp(found));
  }

 protected:
  static constexpr int slot_bytes = 32;

 private:
  /// Two sets in turn: a set is written again only after a barrier that all its readers passed.
  static __device__ __forceinline__ unsigned char* warp_slots(int turn) {
    __shared__ alignas(slot_bytes) unsigned char slots[2][most_row_threads / 32 * slot_bytes];
    return slots[turn];
  }
  template <int barrier>
  __device__ __forceinline__ void sync_at() const {
    asm volatile("bar.sync %0, %1;" ::"n"(barrier), "r"(threads_) : "memory");
  }

  int threads_, index_, turn_ = 0;
};

template <class C, int lanes>
struct Wide {
  static constexpr int count = lanes;
  C of[lanes];
};

template <class T, int lanes>
__device__ __forceinline__ Wide<Compute<T>, lanes> widen(const Pack<T, lanes>& pack) {
  Wide<Compute<T>, lanes> wide;
#pragma unroll
  for (int j = 0; j < lanes; ++j) wide.of[j] = convert_to<Compute<T>>(pack.lane[j]);
  return wide;
}

/// A pack as held in registers: separate 16-bit elements would take twice as many. It is read as words in one
/// access, where the compiler would read a Pack element by element.
template <class T, int lanes>
struct RawPack {
  static constexpr bool in_words = lanes * sizeof(T) == 16;
  std::conditional_t<in_words, Pack<std::uint32_t, 4>, Pack<T, lanes>> bits;

  __device__ __forceinline__ Wide<Compute<T>, lanes> wide() const {
    if constexpr (std::is_same_v<T, __nv_bfloat16> && in_words) {
      // The upper half of a float: one instruction for each, where the compiler takes two for every other.
      Wide<float, lanes> wide;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        wide.of[2 * j] = __uint_as_float(bits.lane[j] << 16);
        wide.of[2 * j + 1] = __uint_as_float(bits.lane[j] & 0xffff0000u);
      }
      return wide;
    } else {
      static_assert(sizeof(Pack<T, lanes>) == sizeof bits);  // also: nvcc 12.4 would not know the size below
      return widen(__builtin_bit_cast(Pack<T, lanes>, bits));
    }
  }
  /// Makes the compiler forget wide(), which it would otherwise keep in additional registers.
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

/// Writes x, or adds x to the old value.
template <class T, int lanes, class Index>
__device__ __forceinline__ void write_pack(T* row, Index pack, Wide<Compute<T>, lanes> x, bool add) {
  Pack<T, lanes>& out = reinterpret_cast<Pack<T, lanes>*>(row)[pack];
  if (add) {
    const auto old = reinterpret_cast<const RawPack<T, lanes>&>(out).wide();
#pragma unroll
    for (int j = 0; j < lanes; ++j) x.of[j] += old.of[j];
  }
  out = narrow<T, lanes>(x);
}

struct PackRange {
  std::int64_t begin, end;
};

template <int inputs>
struct RowsArgs {
  RowsShape shape;
  RowPlace in[inputs];
};

/// A RowPlan's row of one team: while (rows.next()) runs the body once, for all threads. If active() is
/// false, the row is past the end and has no packs. `resident`: RowPlan::is_resident().
template <class T, int lanes, int inputs, bool resident>
class Rows {
 public:
  static constexpr int items = row_items(lanes, sizeof(T));
  using Index = std::conditional_t<resident, int, std::int64_t>;

  __device__ __forceinline__ explicit Rows(const RowsArgs<inputs>& args)
      : args_(args), team_(args.shape.threads_shift) {
    wait_for_earlier_kernels();
    const unsigned teams = blockDim.x >> args.shape.threads_shift;
    row_ = static_cast<std::int64_t>(blockIdx.x) * teams + team_.index();
    if constexpr (resident) fetch(0);
  }

  __device__ __forceinline__ bool next() { return !std::exchange(passed_, true); }
  __device__ __forceinline__ RowTeam& team() { return team_; }
  __device__ __forceinline__ bool active() const { return row_ < args_.shape.rows; }
  __device__ __forceinline__ std::int64_t row() const { return row_; }

  /// Within a pass: the packs of the chunk, of all threads of the team.
  __device__ __forceinline__ const PackRange& chunk() const { return chunk_; }
  /// f(each), for every chunk: each(g) calls g(pack, slot, x...) for every pack of this thread, with its
  /// index in the row and in the chunk, and a Wide of each input.
  template <class F>
  __device__ __forceinline__ void pass(F&& f) {
    const int chunks = resident ? 1 : args_.shape.chunks;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if constexpr (!resident) fetch(chunk);
#pragma unroll
      for (int k = 0; k < inputs; ++k) {
#pragma unroll
        for (int i = 0; i < items; ++i) held_[k][i].forget_wide();
      }
      const Index first = static_cast<Index>(chunk) * args_.shape.chunk_packs;
      const int available = packs_in(chunk);
      chunk_ = {first, first + available};
      f([&](auto&& g) {
#pragma unroll
        for (int i = 0; i < items; ++i) {
          const int at = team_.lane() + i * team_.threads();
          if (at >= available) continue;
          if constexpr (inputs == 1)
            g(first + at, at, held_[0][i].wide());
          else
            g(first + at, at, held_[0][i].wide(), held_[1][i].wide());
        }
      });
    }
  }

 private:
  __device__ __forceinline__ int packs_in(int chunk) const {
    const RowsShape& shape = args_.shape;
    if (!active()) return 0;
    if constexpr (resident) return static_cast<int>(shape.packs);
    const std::int64_t left = shape.packs - static_cast<std::int64_t>(chunk) * shape.chunk_packs;
    return static_cast<int>(left < shape.chunk_packs ? left : shape.chunk_packs);
  }
  __device__ __forceinline__ void fetch(int chunk) {
    const int available = packs_in(chunk);
    const std::int64_t first = static_cast<std::int64_t>(chunk) * args_.shape.chunk_packs;
#pragma unroll
    for (int k = 0; k < inputs; ++k) {
      const T* const data = static_cast<const T*>(args_.in[k].data) + row_ * args_.in[k].stride;
      const auto* packs = reinterpret_cast<const RawPack<T, lanes>*>(data) + first;
      // Without this the compiler computes the address again for every item. After it, the compiler no longer
      // knows that the memory is global.
      asm("" : "+l"(packs));
      __builtin_assume(__isGlobal(packs));
#pragma unroll
      for (int i = 0; i < items; ++i) {
        const int at = team_.lane() + i * team_.threads();
        if (at < available) held_[k][i] = packs[at];
      }
    }
  }

  const RowsArgs<inputs>& args_;
  RowTeam team_;
  bool passed_ = false;
  std::int64_t row_;
  PackRange chunk_{};
  RawPack<T, lanes> held_[inputs][items];
};

/// Blocks of most_row_threads that a multiprocessor is to hold of a kernel over Rows, given what its threads
/// hold.
template <class T, int lanes, int inputs>
inline constexpr int row_blocks = sizeof(T) == 8 ? 1
                                  : lanes == 1   ? (inputs == 1 ? 2 : 1)
                                                 : 4 - inputs;

}  // namespace ferrite::cuda
