// The kernels of order_statistics on dense columns, in the order they run, up to the plan. A sorted sample of
// a column cuts it into buckets: the 4095 sampled keys themselves, and the ranges between two of them.
// Counting all elements tells which bucket holds which rank. A rank that falls on a sampled key is found at
// once, and so are all heavy ties. The other buckets that hold a rank, some percent of the column, are
// collected and searched digit by digit. The sample affects only the speed, never the result; nothing depends
// on the order in which blocks run.
#pragma once

#include <cub/block/block_scan.cuh>

#include "backend_cuda/kit/key_tree.cuh"
#include "backend_cuda/runtime/sample.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/order_statistics.hpp"

namespace ferrite::cuda {

inline constexpr int tree_depth = 12, splitter_count = (1 << tree_depth) - 1;
inline constexpr int open_buckets = splitter_count + 1, bucket_count = 2 * open_buckets;
inline constexpr int most_levels = splitter_count / 2;
inline constexpr int column_threads = 512, plan_threads = 1024, select_threads = 256;
template <class T>
inline constexpr int column_blocks = sizeof(T) == 4 ? 3 : 2;  // on a multiprocessor

/// A wanted rank: element number `rank` of those with low <= key < high, which are collected at `begin`, or
/// not collected if that is negative. If there are none, it is already found: it is `low`.
template <class Key>
struct Wanted {
  Key low, high;
  std::int64_t begin;
  std::uint32_t size, rank;
};

/// What is known of one column.
template <class Key>
struct ColumnPlan {
  Key splitters[open_buckets];         // sorted; the last is not used
  std::uint32_t counts[bucket_count];  // 2 i: between splitters i - 1 and i; 2 i + 1: equal to splitter i
  std::uint32_t missing;               // NaN
  int segments;                        // buckets to collect
  Key low[open_buckets], high[open_buckets];  // of segments, sorted; nothing in those behind the last
  std::uint32_t next[open_buckets];           // where the next element of a segment goes
};

template <class T>
struct OrderArgs {
  using Key = KeyOf<T>;
  const T* x;  // columns lie dense, `stride` apart
  std::int64_t stride, rows;
  const double* levels;
  std::int64_t level_count;
  QuantileMethod method;
  ColumnPlan<Key>* plans;
  Wanted<Key>* wanted;  // [columns, 2, levels]: lower and upper
  Key* candidates;      // [columns, room]
  std::int64_t room;
  T *lower, *upper;     // [columns, levels]
  std::int64_t* count;  // [columns]

  __device__ __forceinline__ const T* column() const { return x + blockIdx.y * stride; }
  __device__ __forceinline__ ColumnPlan<Key>& plan() const { return plans[blockIdx.y]; }
  /// Rank i of 2 * level_count: lower ranks, then upper ones.
  __device__ __forceinline__ std::uint32_t rank(std::int64_t i, std::int64_t elements) const {
    const bool is_upper = i >= level_count;
    const QuantilePosition at = quantile_position(method, levels[is_upper ? i - level_count : i], elements);
    return static_cast<std::uint32_t>(is_upper ? at.upper : at.lower);
  }
  __device__ __forceinline__ void found(std::int64_t i, T value) const {
    const std::int64_t row = blockIdx.y * level_count;
    (i < level_count ? lower + row + i : upper + row + i - level_count)[0] = value;
  }
};

/// Ascending; `count` is a power of two.
template <class Key>
__device__ void bitonic_sort(Key* keys, int count) {
  for (int size = 2; size <= count; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < count / 2; i += blockDim.x) {
        const int first = 2 * i - (i & (stride - 1)), second = first + stride;
        const Key a = keys[first], b = keys[second];
        if ((a > b) == ((first & size) == 0)) {
          keys[first] = b;
          keys[second] = a;
        }
      }
    }
  }
  __syncthreads();
}

extern __shared__ __align__(16) std::byte shared_memory[];

/// Columns of no more than sample_size rows are sorted whole; a block for each.
template <class T>
__global__ void __launch_bounds__(plan_threads)
    short_columns_kernel(const __grid_constant__ OrderArgs<T> args) {
  using Key = KeyOf<T>;
  const auto keys = reinterpret_cast<Key*>(shared_memory);
  const auto rows = static_cast<int>(args.rows);
  int padded = 1, numbers = 0;
  while (padded < rows) padded *= 2;
  for (int i = threadIdx.x; i < padded; i += plan_threads)
    keys[i] = i < rows ? ascending_key(args.column()[i]) : greatest_key<Key>;
  bitonic_sort(keys, padded);
  for (int begin = 0; begin < rows; begin += plan_threads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    numbers += __syncthreads_count(i < rows && keys[i] != greatest_key<Key>);
  }
  for (std::int64_t i = threadIdx.x; i < 2 * args.level_count; i += plan_threads)
    args.found(i, numbers == 0 ? std::numeric_limits<T>::quiet_NaN()
                               : from_ascending_key<T>(keys[args.rank(i, numbers)]));
  if (threadIdx.x == 0) args.count[blockIdx.y] = numbers;
}

/// Every second of the sorted sample is a splitter; a block for each column.
template <class T>
__global__ void __launch_bounds__(plan_threads) sample_kernel(const __grid_constant__ OrderArgs<T> args) {
  using Key = KeyOf<T>;
  const auto keys = reinterpret_cast<Key*>(shared_memory);
  ColumnPlan<Key>& plan = args.plan();
  for (int i = threadIdx.x; i < sample_size; i += plan_threads)
    keys[i] = ascending_key(args.column()[sampled_row(i, args.rows)]);
  bitonic_sort(keys, sample_size);
  for (int i = threadIdx.x; i < splitter_count; i += plan_threads)
    plan.splitters[i] = keys[(i + 1) * (sample_size / open_buckets) - 1];
  for (int i = threadIdx.x; i < bucket_count; i += plan_threads) plan.counts[i] = 0;
  if (threadIdx.x == 0) plan.missing = 0;
}

/// How many elements each bucket has.
template <class T>
__global__ void __launch_bounds__(column_threads, 2) count_kernel(const __grid_constant__ OrderArgs<T> args) {
  using Key = KeyOf<T>;
  const auto tree = reinterpret_cast<Key*>(shared_memory);
  const auto counts = reinterpret_cast<std::uint32_t*>(tree + open_buckets);
  ColumnPlan<Key>& plan = args.plan();
  plant_tree(tree, tree_depth, [&](int i) { return plan.splitters[i]; });
  for (int i = threadIdx.x; i < bucket_count; i += column_threads) counts[i] = 0;
  __syncthreads();
  std::uint32_t missing = 0;
  for_each_key<column_threads>(args.column(), args.rows, [&](const Key(&keys)[values_at_once], int valid) {
    std::uint32_t leaf[values_at_once];
    descend(tree, tree_depth, keys, leaf);
#pragma unroll
    for (int i = 0; i < values_at_once; ++i) {
      if (i >= valid) continue;
      if (keys[i] == greatest_key<Key>)
        ++missing;
      else
        atomicAdd(&counts[2 * (leaf[i] - open_buckets) - (floor_of(tree, leaf[i]) == keys[i] ? 1 : 0)], 1u);
    }
  });
  if (missing > 0) atomicAdd(&plan.missing, missing);
  __syncthreads();
  for (int i = threadIdx.x; i < bucket_count; i += column_threads)
    if (counts[i] > 0) atomicAdd(&plan.counts[i], counts[i]);
}

/// Which bucket every rank is in, and which buckets to collect; a block for each column.
template <class T>
__global__ void __launch_bounds__(plan_threads) plan_kernel(const __grid_constant__ OrderArgs<T> args) {
  using Key = KeyOf<T>;
  using Scan = cub::BlockScan<std::uint32_t, plan_threads>;
  constexpr int each = bucket_count / plan_threads, each_open = open_buckets / plan_threads;
  __shared__ typename Scan::TempStorage scan;
  __shared__ std::uint32_t before[bucket_count];  // elements in the buckets before
  __shared__ std::uint16_t segment_of[open_buckets];
  ColumnPlan<Key>& plan = args.plan();
  const int thread = static_cast<int>(threadIdx.x);

  std::uint32_t counts[each];
#pragma unroll
  for (int i = 0; i < each; ++i) counts[i] = plan.counts[thread * each + i];
  Scan(scan).ExclusiveSum(counts, counts);
#pragma unroll
  for (int i = 0; i < each; ++i) before[thread * each + i] = counts[i];
  for (int i = thread; i < open_buckets; i += plan_threads) segment_of[i] = 0;
  __syncthreads();
  const std::int64_t numbers = args.rows - plan.missing;
  if (thread == 0) args.count[blockIdx.y] = numbers;
  const auto bucket_of = [&](std::uint32_t rank) {  // the last that begins at or before it and is not empty
    int bucket = 0;
    for (int step = bucket_count / 2; step > 0; step /= 2)
      if (before[bucket + step] <= rank) bucket += step;
    return bucket;
  };
  const std::int64_t wanted_count = numbers > 0 ? 2 * args.level_count : 0;
  for (std::int64_t i = thread; i < wanted_count; i += plan_threads) {
    const int bucket = bucket_of(args.rank(i, numbers));
    if (bucket % 2 == 0) segment_of[bucket / 2] = 1;
  }
  __syncthreads();

  // The open buckets that hold a rank are numbered and get their places.
  std::uint32_t taken[each_open], number[each_open], sizes[each_open], begin[each_open], segments;
#pragma unroll
  for (int i = 0; i < each_open; ++i) {
    taken[i] = segment_of[thread * each_open + i];
    sizes[i] = taken[i] ? plan.counts[2 * (thread * each_open + i)] : 0;
  }
  Scan(scan).ExclusiveSum(taken, number, segments);
  __syncthreads();
  Scan(scan).ExclusiveSum(sizes, begin);
  for (int i = thread; i < open_buckets; i += plan_threads) {
    plan.low[i] = greatest_key<Key>;
    plan.high[i] = 0;
  }
  __syncthreads();
  const auto low_of = [&](int open) { return open > 0 ? plan.splitters[open - 1] + 1 : Key{0}; };
  const auto high_of = [&](int open) {
    return open < splitter_count ? plan.splitters[open] : greatest_key<Key>;
  };
#pragma unroll
  for (int i = 0; i < each_open; ++i) {
    if (!taken[i]) continue;
    const int open = thread * each_open + i;
    segment_of[open] = static_cast<std::uint16_t>(number[i]);
    plan.low[number[i]] = low_of(open);
    if (std::int64_t{begin[i]} + sizes[i] <= args.room) plan.high[number[i]] = high_of(open);
    plan.next[number[i]] = begin[i];
  }
  if (thread == 0) plan.segments = static_cast<int>(segments);
  __syncthreads();

  for (std::int64_t i = thread; i < 2 * args.level_count; i += plan_threads) {
    Wanted<Key>& w = args.wanted[blockIdx.y * 2 * args.level_count + i];
    w = {greatest_key<Key>, 0, -1, 0, 0};
    if (numbers == 0) continue;
    const std::uint32_t rank = args.rank(i, numbers);
    const int bucket = bucket_of(rank), open = bucket / 2;
    if (bucket % 2 == 1) {
      w.low = plan.splitters[open];
      continue;
    }
    const int segment = segment_of[open];
    const bool collected = plan.high[segment] > 0;
    w = {low_of(open), high_of(open), collected ? blockIdx.y * args.room + plan.next[segment] : -1,
         plan.counts[bucket], rank - before[bucket]};
  }
}

}  // namespace ferrite::cuda
