// The k-th highest of the keys that the threads of a block have, without sorting: digit by digit, by
// counting.
#pragma once

namespace ferrite::cuda {

/// A k-th highest key; how many are equal to it, and how many of these belong to the highest k.
struct KthKey {
  unsigned key, equal, needed;
};

template <int threads>
class KthHighest {
 public:
  static constexpr int bins = 256;
  /// Shared by the threads of a block.
  struct Memory {
    unsigned count[bins];
    unsigned digit, before, equal;
  };

  __device__ explicit KthHighest(Memory& memory)
      : memory_(memory), thread_(static_cast<int>(threadIdx.x)), lane_(thread_ % 32) {}

  /// Of `count` keys. 0 < k <= count. A thread asks for the keys at its number, and at that plus multiples of
  /// `threads`. For all threads of the block.
  template <class KeyOf>
  __device__ KthKey find(unsigned k, int count, KeyOf&& key_of) {
    unsigned prefix = 0, fixed = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      if (thread_ < bins) memory_.count[thread_] = 0;
      __syncthreads();
      for (int first = 0; first < count; first += threads) {
        const int i = first + thread_;
        const unsigned key = i < count ? key_of(i) : 0;
        const bool counts = i < count && (key & fixed) == prefix;
        const unsigned digit = key >> shift & (bins - 1);
        // Most keys have few values in their first digits: a warp adds equal ones at once.
        const unsigned counting = __ballot_sync(everyone, counts);
        if (counts) {
          const unsigned alike = __match_any_sync(counting, digit);
          if (lane_ == __ffs(static_cast<int>(alike)) - 1)
            atomicAdd(&memory_.count[digit], static_cast<unsigned>(__popc(alike)));
        }
      }
      __syncthreads();
      if (thread_ < 32) find_digit(k);
      __syncthreads();
      prefix |= memory_.digit << shift;
      fixed |= static_cast<unsigned>(bins - 1) << shift;
      k -= memory_.before;
    }
    const unsigned equal = memory_.equal;
    __syncthreads();
    return {prefix, equal, k};
  }

 private:
  static constexpr unsigned everyone = 0xffffffffu;

  /// By the first warp: the bin of the k-th highest key, from the top; how many keys are above that bin.
  __device__ void find_digit(unsigned k) {
    constexpr int per_lane = bins / 32;
    unsigned own = 0;
    for (int i = 0; i < per_lane; ++i) own += memory_.count[bins - 1 - (lane_ * per_lane + i)];
    unsigned upto = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned lower = __shfl_up_sync(everyone, upto, step);
      if (lane_ >= step) upto += lower;
    }
    unsigned before = upto - own;
    if (before >= k || upto < k) return;
    for (int i = 0; i < per_lane; ++i) {
      const int bin = bins - 1 - (lane_ * per_lane + i);
      const unsigned count = memory_.count[bin];
      if (before + count >= k) {
        memory_.digit = static_cast<unsigned>(bin);
        memory_.before = before;
        memory_.equal = count;
        return;
      }
      before += count;
    }
  }

  Memory& memory_;
  int thread_, lane_;
};

}  // namespace ferrite::cuda
