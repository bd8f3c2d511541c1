// How next_token chooses among the scores of one text: one block. For a small k the few scores that may be
// among the likeliest k are put together, and all that follows goes over these alone. For a large one they
// are found digit by digit; those that have a share of the probability by a search for the least weight among
// them. Counts are integers and sums have a fixed order, so that every run gives the same token.
#pragma once

#include "backend_cuda/kit/kth_highest.cuh"
#include "backend_cuda/kit/ordered_keys.cuh"

namespace ferrite::cuda::token_choice {

constexpr int threads = 1024, warps = threads / 32;
constexpr unsigned everyone = 0xffffffffu;

/// Shared by the threads of a block.
struct Memory {
  KthHighest<threads>::Memory highest;
  double sums[3][warps];
  unsigned long long keys[warps];
  unsigned few[threads];                     // keys of scores, in any order
  int few_tokens[threads], tokens[threads];  // theirs, in that order and in their own
  unsigned counts[warps];
  KthKey least;  // of the likeliest
  int place, found;
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
  /// `numbers`: room for the scores of `vocab` tokens, in shared or in the GPU's memory.
  __device__ Choice(Memory& memory, float* numbers, int vocab)
      : memory_(memory),
        highest_(memory.highest),
        numbers_(numbers),
        count_(vocab),
        thread_(static_cast<int>(threadIdx.x)),
        warp_(thread_ / 32),
        lane_(thread_ % 32) {
    share_out();
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
    own_highest_ = static_cast<unsigned>(best >> 32);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) best = ::max(best, __shfl_xor_sync(everyone, best, step));
    if (lane_ == 0) memory_.keys[warp_] = best;
    __syncthreads();
    for (int w = 0; w < warps; ++w) best = ::max(best, memory_.keys[w]);
    return best;
  }

  /// The k-th highest score, as a key. 0 < k < vocab. After take_scores. What cannot be among the highest k
  /// may be left out from now on.
  __device__ Limit<unsigned> likeliest(unsigned k) {
    const auto key_of = [&](int i) { return ascending_key(numbers_[i]); };
    const KthKey found = keep_few(k) ? memory_.least : highest_.find(k, count_, 0, key_of);
    const unsigned key = found.key;
    if (found.needed == found.equal) return {key, count_};
    return {key, place_of(found.needed, [&](int i) { return key_of(i) == key; })};
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

  /// The token at the share `uniform` of the weights that stay, in the order of the tokens.
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
    for (int w = 0; w < warps; ++w) {
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
    const int chosen = ::min(memory_.place, static_cast<int>(end) - 1);
    return has_few_ && chosen >= 0 ? memory_.tokens[chosen] : chosen;
  }

 private:
  struct Sums {
    double sum[3];
    __device__ __forceinline__ double operator[](unsigned i) const { return sum[i]; }
  };
  /// A thread has neighbouring places. An odd number of them, so that no two threads of a warp share a bank.
  __device__ void share_out() {
    const int share = (count_ + threads - 1) / threads | 1;
    begin_ = static_cast<int>(::min(static_cast<long long>(count_), static_cast<long long>(share) * thread_));
    end_ = ::min(count_, begin_ + share);
  }
  /// Puts the scores that may be among the highest k in the first places, in the order of their tokens, and
  /// the k-th highest in memory_.least; false if they may be too many. The k-th highest of what each thread
  /// has as its highest is not above the k-th of all, so that only scores from there on count. They are few,
  /// unless k is large or most of the scores are equal.
  __device__ bool keep_few(unsigned k) {
    if (k > threads / 2) return false;
    const unsigned least = highest_.find(k, threads, 16, [&](int) { return own_highest_; }).key;
    if (thread_ == 0) memory_.found = 0;
    __syncthreads();
    for (int id = thread_; id < count_; id += threads) {
      const unsigned key = ascending_key(numbers_[id]);
      if (key < least) continue;
      const int place = atomicAdd(&memory_.found, 1);
      if (place >= threads) continue;
      memory_.few[place] = key;
      memory_.few_tokens[place] = id;
    }
    __syncthreads();
    const int few = memory_.found;
    if (few > threads) return false;
    if (thread_ < few) {
      const unsigned own = memory_.few[thread_];
      const int token = memory_.few_tokens[thread_];
      unsigned above = 0, equal = 0, equal_before = 0;
      int place = 0;
      for (int i = 0; i < few; ++i) {
        const unsigned key = memory_.few[i];
        const bool is_before = memory_.few_tokens[i] < token;
        place += is_before ? 1 : 0;
        above += key > own ? 1 : 0;
        equal += key == own ? 1 : 0;
        equal_before += key == own && is_before ? 1 : 0;
      }
      memory_.tokens[place] = token;
      numbers_[place] = from_ascending_key<float>(own);
      if (equal_before == 0 && above < k && k <= above + equal) memory_.least = {own, equal, k - above};
    }
    __syncthreads();
    count_ = few;
    has_few_ = true;
    share_out();
    return true;
  }
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
    for (int w = 0; w < warp_; ++w) before += memory_.counts[w];
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
    for (int w = 0; w < warps; ++w)
#pragma unroll
      for (int i = 0; i < 3; ++i) total.sum[i] += memory_.sums[i][w];
    return total;
  }

  Memory& memory_;
  KthHighest<threads> highest_;
  float* numbers_;
  int count_;             // numbers that there are
  bool has_few_ = false;  // they are those of memory_.tokens, else of all tokens
  int thread_, warp_, lane_, begin_, end_;
  unsigned own_highest_ = 0;  // key of what this thread has taken
};

}  // namespace ferrite::cuda::token_choice
