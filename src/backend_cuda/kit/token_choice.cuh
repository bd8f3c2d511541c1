// How next_token chooses among the scores of one text, all or the few that count (few_tokens.cuh): one block.
// The likeliest k of all are found digit by digit, those that have a share of the probability by a search for
// the least weight among them. Counts are integers and sums have a fixed order, so that every run gives the
// same token.
#pragma once

#include "backend_cuda/kit/few_tokens.cuh"
#include "backend_cuda/kit/kth_highest.cuh"
#include "backend_cuda/kit/ordered_keys.cuh"

namespace ferrite::cuda::token_choice {

constexpr int warps = threads / 32;

/// Shared by the threads of a block.
struct Memory {
  FewTokens few;
  KthHighest<threads>::Memory highest;
  double sums[3][warps];
  unsigned long long keys[warps];
  unsigned counts[warps];
  int place;
};

/// An element stays if it is above `value`, or equal to it and not behind `last`.
template <class Value>
struct Limit {
  Value value;
  int last;
  __device__ __forceinline__ bool keeps(Value v, int id) const {
    return v > value || (v == value && id <= last);
  }
};

class Choice {
 public:
  /// `numbers`: the scores of `count` tokens, or room for them.
  __device__ Choice(Memory& memory, float* numbers, int count)
      : memory_(memory),
        highest_(memory.highest),
        numbers_(numbers),
        count_(count),
        thread_(static_cast<int>(threadIdx.x)),
        warp_(thread_ / 32),
        lane_(thread_ % 32) {
    // A thread has neighbouring places. An odd number of them, so that no two threads of a warp share a bank.
    const int share = (count + threads - 1) / threads | 1;
    const auto place_of_thread = [&](int thread) {
      return static_cast<int>(::min(static_cast<long long>(count), static_cast<long long>(share) * thread));
    };
    begin_ = place_of_thread(thread_);
    end_ = place_of_thread(thread_ + 1);
    warps_ = (count + 32 * share - 1) / (32 * share);
  }

  /// The highest score and its token, of those that `score(id)` gives; of equal ones the first. All scores
  /// are stored. NaN counts as the highest.
  template <class Score>
  __device__ unsigned long long take_scores(Score&& score) {
    constexpr int at_once = 16;  // that are under way together: a store between two loads would part them
    unsigned long long best = 0;
    for (int first = thread_; first < count_; first += at_once * threads) {
      float values[at_once];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int id = first + u * threads;
        values[u] = id < count_ ? score(id) : 0.0f;
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int id = first + u * threads;
        if (id >= count_) break;
        numbers_[id] = values[u];
        const unsigned long long key =
            static_cast<unsigned long long>(ascending_key(values[u])) << 32 | ~static_cast<unsigned>(id);
        best = ::max(best, key);
      }
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) best = ::max(best, __shfl_xor_sync(everyone, best, step));
    if (lane_ == 0) memory_.keys[warp_] = best;
    __syncthreads();
    for (int w = 0; w < warps; ++w) best = ::max(best, memory_.keys[w]);
    return best;
  }

  /// The likeliest k. 0 < k < count. After take_scores.
  __device__ Limit<unsigned> likeliest(unsigned k) {
    return limit(highest_.find(k, count_, [&](int i) { return ascending_key(numbers_[i]); }));
  }
  /// Those that belong to the likeliest, of which this is the least.
  __device__ Limit<unsigned> limit(const KthKey& least) {
    if (least.needed == least.equal) return {least.key, count_};
    return {least.key,
            place_of(least.needed, [&](int i) { return ascending_key(numbers_[i]) == least.key; })};
  }

  /// Puts weights in the places of the scores: exp((score - top) / temperature), 0 for those that go.
  __device__ void weigh(const Limit<unsigned>& limit, float top, float temperature) {
    for (int id = begin_; id < end_; ++id) {
      const float score = numbers_[id];
      numbers_[id] = limit.keeps(ascending_key(score), id) ? expf((score - top) / temperature) : 0.0f;
    }
  }

  /// The least weight among the fewest and heaviest that have the share `top_p`, below 1, of all together. Of
  /// weights that are equal the first count as heavier.
  __device__ Limit<float> heaviest(double top_p) {
    const double enough = top_p * weight_above(std::uint32_t{0}, 0, 0)[0];
    // Weights are not negative, so their bits have their order. Two bits at a time, from the highest that a
    // weight of 1 has: the least value above which there is not enough.
    unsigned bits = 0;
    double above = 0;
    for (int shift = 28; shift >= 0; shift -= 2) {
      const unsigned low = (1u << shift) - 1;
      const auto candidate = [&](unsigned digit) { return bits | digit << shift | low; };
      const Sums sums = weight_above(candidate(0), candidate(1), candidate(2));
      unsigned digit = 0;
      while (digit < 3 && !(sums[digit] < enough)) ++digit;
      bits |= digit << shift;
      if (digit < 3) above = sums[digit];
    }
    // The last sum that was small enough belongs to the value that was found, or to one with nothing between.
    const float least = __uint_as_float(bits);
    const double count = ::ceil((enough - above) / static_cast<double>(least));
    const unsigned needed = count < 1        ? 1u
                            : count > count_ ? static_cast<unsigned>(count_)
                                             : static_cast<unsigned>(count);
    return {least, place_of(needed, [&](int id) { return numbers_[id] == least; })};
  }

  /// The place at the share `uniform` of the weights that stay.
  __device__ int draw(const Limit<float>& limit, double uniform) {
    const auto weight = [&](int id) {
      const float w = numbers_[id];
      return limit.keeps(w, id) ? static_cast<double>(w) : 0.0;
    };
    double own = 0;
    int last = -1;  // with a weight
    for (int id = begin_; id < end_; ++id) {
      own += weight(id);
      if (weight(id) > 0) last = id;
    }
    double sum = own;  // up to this thread
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const double lower = __shfl_up_sync(everyone, sum, step);
      if (lane_ >= step) sum += lower;
    }
    int last_of_warp = last;
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      last_of_warp = ::max(last_of_warp, __shfl_xor_sync(everyone, last_of_warp, step));
    const double before_in_warp = __shfl_up_sync(everyone, sum, 1);
    __syncthreads();
    if (lane_ == 31) memory_.sums[0][warp_] = sum;
    if (lane_ == 0) memory_.counts[warp_] = static_cast<unsigned>(last_of_warp + 1);
    if (thread_ == 0) memory_.place = count_;
    __syncthreads();
    double before = 0, total = 0;
    unsigned end = 0;
    for (int w = 0; w < warps_; ++w) {
      if (w == warp_) before = total;
      total += memory_.sums[0][w];
      end = ::max(end, memory_.counts[w]);
    }
    const double low = before + (lane_ > 0 ? before_in_warp : 0.0), high = before + sum;
    const double target = uniform * total;
    if (last >= 0 && low <= target && target < high) {
      double reached = low;
      int chosen = last;
      for (int id = begin_; id < end_; ++id) {
        reached += weight(id);
        if (weight(id) > 0 && reached > target) {
          chosen = id;
          break;
        }
      }
      atomicMin(&memory_.place, chosen);  // rounding may let two threads think it is theirs
    }
    __syncthreads();
    return ::min(memory_.place, static_cast<int>(end) - 1);
  }

 private:
  struct Sums {
    double sum[3];
    __device__ __forceinline__ double operator[](unsigned i) const { return sum[i]; }
  };
  /// The place of the k-th token, counted from 1, of which `is_meant` is true; the end if there are fewer.
  template <class IsMeant>
  __device__ int place_of(unsigned k, IsMeant&& is_meant) {
    unsigned own = 0;
    for (int id = begin_; id < end_; ++id) own += is_meant(id) ? 1 : 0;
    unsigned upto = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned lower = __shfl_up_sync(everyone, upto, step);
      if (lane_ >= step) upto += lower;
    }
    __syncthreads();
    if (lane_ == 31) memory_.counts[warp_] = upto;
    if (thread_ == 0) memory_.place = count_;
    __syncthreads();
    unsigned before = upto - own;
    for (int w = 0; w < ::min(warp_, warps_); ++w) before += memory_.counts[w];
    if (before < k && k <= before + own) {
      for (int id = begin_; id < end_; ++id) {
        if (is_meant(id) && ++before == k) {
          memory_.place = id;
          break;
        }
      }
    }
    __syncthreads();
    const int place = memory_.place;
    __syncthreads();
    return place;
  }

  /// The sums of the weights whose bits are above each of three values.
  __device__ Sums weight_above(unsigned a, unsigned b, unsigned c) {
    float own[3] = {};
    for (int id = begin_; id < end_; ++id) {
      const float weight = numbers_[id];
      const unsigned bits = __float_as_uint(weight);
      own[0] += bits > a ? weight : 0.0f;
      own[1] += bits > b ? weight : 0.0f;
      own[2] += bits > c ? weight : 0.0f;
    }
    Sums total{};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      double sum = own[i];
#pragma unroll
      for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(everyone, sum, step);
      if (lane_ == 0) memory_.sums[i][warp_] = sum;
    }
    __syncthreads();
    for (int w = 0; w < warps_; ++w)
#pragma unroll
      for (int i = 0; i < 3; ++i) total.sum[i] += memory_.sums[i][w];
    return total;
  }

  Memory& memory_;
  KthHighest<threads> highest_;
  float* numbers_;
  int count_;  // numbers that there are
  int thread_, warp_, lane_;
  int begin_, end_;  // the thread's places
  int warps_;        // that have places
};

}  // namespace ferrite::cuda::token_choice
