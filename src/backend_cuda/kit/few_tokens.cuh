// The scores that may be among the highest k of a text, k being small: the blocks of a cluster find them
// together, each among its share of the tokens, and the first gets all of them.
//
// Groups of threads find their highest scores. The k-th highest of these is not above the k-th highest of
// all, so that only scores from there on count: hardly more than k, unless many scores are equal, or the
// highest lie in a few groups.
#pragma once

#include "backend_cuda/kit/kth_highest.cuh"
#include "backend_cuda/kit/ordered_keys.cuh"
#include "backend_cuda/kit/ptx.cuh"

namespace ferrite::cuda::token_choice {

constexpr int threads = 1024;
constexpr unsigned everyone = 0xffffffffu;

/// Shared by the threads of a block.
struct FewTokens {
  static constexpr int most = threads;  // tokens
  static constexpr int most_k = most / 2;

  alignas(16) unsigned maxima[threads];  // keys of what the groups of the cluster have as their highest
  unsigned least_maximum;                // the k-th highest of these
  // From here on in the first block only.
  unsigned keys[most];  // of scores, in any order
  int ids[most];        // their tokens
  int count;            // of both; there may be more than have a place
  // In the order of the tokens.
  int tokens[most];
  float scores[most];
  KthKey least;  // the k-th highest

  /// 0 < k <= most_k, `score(id)` for 0 <= id < vocab. By all blocks of a cluster, which have arrived once at
  /// its barrier; the first returns the highest score as a key. For the others this is the end.
  template <class Score>
  __device__ unsigned find(unsigned k, int vocab, Score&& score) {
    const int thread = static_cast<int>(threadIdx.x);
    const int block = ptx::block_in_cluster(), blocks = ptx::cluster_blocks();
    const int share = (vocab + blocks - 1) / blocks, begin = block * share;
    const int end = ::min(vocab, begin + share);
    int groups = 256;  // in the cluster
    while (groups < static_cast<int>(2 * k)) groups *= 2;
    if (thread == 0) count = 0;
    unsigned own = 0;  // below every score
    for_scores(begin, end, score, [&](int, unsigned key) { own = ::max(own, key); });
    send_maxima(own, groups);
    const unsigned highest = find_least_maximum(k, groups);
    __syncthreads();
    for_scores(begin, end, score, [&](int id, unsigned key) {
      if (key < least_maximum) return;
      const int place = ptx::add_in_block(&count, 0, 1);
      if (place >= most) return;
      ptx::store_in_block(&keys[place], 0, key);
      ptx::store_in_block(&ids[place], 0, id);
    });
    if (blocks > 1) {
      ptx::arrive_at_cluster();
      if (block > 0) return highest;
      ptx::wait_for_cluster();
    } else {
      __syncthreads();
    }
    if (count <= most) put_in_order(k);
    __syncthreads();
    return highest;
  }

 private:
  /// Calls f(id, key) for the scores of this thread.
  template <class Score, class F>
  static __device__ __forceinline__ void for_scores(int begin, int end, Score&& score, F&& f) {
    constexpr int at_once = 8;  // that are under way together
    for (int first = begin + static_cast<int>(threadIdx.x); first < end; first += at_once * threads) {
      unsigned found[at_once];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        const int id = first + u * threads;
        found[u] = id < end ? ascending_key(score(id)) : 0;
      }
#pragma unroll
      for (int u = 0; u < at_once; ++u)
        if (first + u * threads < end) f(first + u * threads, found[u]);
    }
  }
  /// To all blocks of the cluster. Waits for theirs.
  __device__ void send_maxima(unsigned highest, int groups) {
    const int thread = static_cast<int>(threadIdx.x), blocks = ptx::cluster_blocks();
    const int width = blocks * threads / groups;  // threads of a group, at most a warp
    for (int step = width / 2; step > 0; step /= 2)
      highest = ::max(highest, __shfl_xor_sync(everyone, highest, step));
    unsigned* const own = &maxima[(ptx::block_in_cluster() * threads + thread) / width];
    if (blocks == 1) {
      if (thread % width == 0) *own = highest;
      return __syncthreads();
    }
    ptx::wait_for_cluster();  // all blocks have begun
    for (int block = thread % width; block < blocks; block += width) ptx::store_in_block(own, block, highest);
    ptx::synchronize_cluster();
  }
  /// Returns the highest. Threads that follow each other share the comparisons of a maximum with all others.
  __device__ unsigned find_least_maximum(unsigned k, int groups) {
    const int thread = static_cast<int>(threadIdx.x), sharers = threads / groups;
    const unsigned own = maxima[thread / sharers];
    unsigned above = 0, not_below = 0, highest = 0;
    const auto compare = [&](unsigned other) {
      above += other > own ? 1 : 0;
      not_below += other >= own ? 1 : 0;
      highest = ::max(highest, other);
    };
    for (int i = thread % sharers; i < groups / 4; i += sharers) {
      const uint4 four = reinterpret_cast<const uint4*>(maxima)[i];
      compare(four.x);
      compare(four.y);
      compare(four.z);
      compare(four.w);
    }
    for (int step = sharers / 2; step > 0; step /= 2) {
      above += __shfl_xor_sync(everyone, above, step);
      not_below += __shfl_xor_sync(everyone, not_below, step);
      highest = ::max(highest, __shfl_xor_sync(everyone, highest, step));
    }
    if (above < k && k <= not_below) least_maximum = own;  // threads with equal ones write the same
    return highest;
  }
  /// Threads that follow each other share the comparisons of a token with all others.
  __device__ void put_in_order(unsigned k) {
    const int thread = static_cast<int>(threadIdx.x);
    int sharers = 32;
    while (count * sharers > threads) sharers /= 2;
    const int of_thread = ::min(thread / sharers, count - 1);  // what is beyond is not stored
    const unsigned own = keys[of_thread];
    const int id = ids[of_thread];
    unsigned above = 0, equal = 0;
    int place = 0;
    for (int i = thread % sharers; i < count; i += sharers) {
      place += ids[i] < id ? 1 : 0;
      above += keys[i] > own ? 1 : 0;
      equal += keys[i] == own ? 1 : 0;
    }
    for (int step = sharers / 2; step > 0; step /= 2) {
      place += __shfl_xor_sync(everyone, place, step);
      above += __shfl_xor_sync(everyone, above, step);
      equal += __shfl_xor_sync(everyone, equal, step);
    }
    if (thread >= count * sharers || thread % sharers != 0) return;
    tokens[place] = id;
    scores[place] = from_ascending_key<float>(own);
    if (above < k && k <= above + equal) least = {own, equal, k - above};  // all equal ones write the same
  }
};

}  // namespace ferrite::cuda::token_choice
