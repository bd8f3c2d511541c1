// The second half of order_statistics: collects the segments that a plan names, and finds the wanted elements
// in them.
#pragma once

#include "backend_cuda/kit/order_statistics.cuh"

namespace ferrite::cuda {

/// The elements of the segments, each segment in its place, in any order.
template <class T>
__global__ void __launch_bounds__(column_threads, column_blocks<T>)
    collect_kernel(const __grid_constant__ OrderArgs<T> args) {
  using Key = KeyOf<T>;
  ColumnPlan<Key>& plan = args.plan();
  const int segments = plan.segments, depth = 32 - __clz(segments);
  if (segments == 0) return;
  const auto tree = reinterpret_cast<Key*>(shared_memory), high = tree;  // high: by leaf, behind the tree
  plant_tree(tree, depth, [&](int i) { return plan.low[i]; });
  for (int i = threadIdx.x; i < 1 << depth; i += column_threads)
    high[(1 << depth) + i] = i > 0 ? plan.high[i - 1] : Key{0};
  __syncthreads();
  Key* const candidates = args.candidates + blockIdx.y * args.room;
  for_each_key<column_threads>(args.column(), args.rows, [&](const Key(&keys)[values_at_once], int valid) {
    std::uint32_t leaf[values_at_once];
    descend(tree, depth, keys, leaf);
    constexpr std::uint32_t none = ~0u;
    std::uint32_t place[values_at_once];
#pragma unroll
    for (int i = 0; i < values_at_once; ++i) {  // all ask before any waits for the answer
      place[i] = none;
      if (i < valid && keys[i] < high[leaf[i]])
        place[i] = atomicAdd(&plan.next[leaf[i] - (1u << depth) - 1], 1u);
    }
#pragma unroll
    for (int i = 0; i < values_at_once; ++i)
      if (place[i] != none) candidates[place[i]] = keys[i];
  });
}

/// One wanted element for each block, a digit of eight bits at a time.
template <class T>
__global__ void __launch_bounds__(select_threads) select_kernel(const __grid_constant__ OrderArgs<T> args) {
  using Key = KeyOf<T>;
  using Scan = cub::BlockScan<std::uint32_t, select_threads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ std::uint32_t counts[select_threads], chosen, rank_in_chosen;
  const Wanted<Key> wanted = args.wanted[blockIdx.y * 2 * args.level_count + blockIdx.x];
  Key prefix = wanted.low;  // of the element: what is known of it, then zeros
  int unknown = 0;          // its bits that are not
  std::uint32_t rank = wanted.rank;
  if (wanted.size > 0) {
    const Key differing = wanted.low ^ (wanted.high - 1);
    while (unknown < 8 * static_cast<int>(sizeof(Key)) && differing >> unknown != 0) ++unknown;
    prefix = unknown < 8 * static_cast<int>(sizeof(Key)) ? prefix >> unknown << unknown : 0;
  }
  while (unknown > 0) {
    const int known = unknown, digit_bits = ::min(unknown, 8);
    unknown -= digit_bits;
    counts[threadIdx.x] = 0;
    __syncthreads();
    const auto add = [&](Key key) {
      const Key above = key ^ prefix;
      if (known < 8 * static_cast<int>(sizeof(Key)) && above >> known != 0) return;
      atomicAdd(&counts[static_cast<std::uint32_t>(key >> unknown) & ((1u << digit_bits) - 1)], 1u);
    };
    if (wanted.begin >= 0) {
      const Key* const candidates = args.candidates + wanted.begin;
#pragma unroll 4
      for (std::uint32_t i = threadIdx.x; i < wanted.size; i += select_threads) add(candidates[i]);
    } else {
      for (std::int64_t i = threadIdx.x; i < args.rows; i += select_threads) {
        const Key key = ascending_key(args.column()[i]);
        if (wanted.low <= key && key < wanted.high) add(key);
      }
    }
    __syncthreads();
    const std::uint32_t own = counts[threadIdx.x];
    std::uint32_t before;
    Scan(scan).ExclusiveSum(own, before);
    if (before <= rank && rank - before < own) {
      chosen = threadIdx.x;
      rank_in_chosen = rank - before;
    }
    __syncthreads();
    prefix |= static_cast<Key>(chosen) << unknown;
    rank = rank_in_chosen;
  }
  if (threadIdx.x == 0)
    args.found(blockIdx.x, prefix == greatest_key<Key> ? std::numeric_limits<T>::quiet_NaN()
                                                       : from_ascending_key<T>(prefix));
}

}  // namespace ferrite::cuda
