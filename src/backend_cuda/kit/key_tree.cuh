// Finds the place of a key among sorted ones, for all elements of a column. The sorted keys are in shared
// memory as a search tree, root first, so that the paths of a warp's threads begin in one bank and spread
// over all. The descent has no branch and takes the same time for all data.
#pragma once

#include "backend_cuda/kit/ordered_keys.cuh"

namespace ferrite::cuda {

template <class Key>
inline constexpr Key greatest_key = static_cast<Key>(~Key{0});  // NaN

/// The index of the sorted key at `node` of a tree of 2^depth - 1 keys; nodes count from 1, row by row.
__device__ __forceinline__ int sorted_index(int node, int depth) {
  const int row = 31 - __clz(node);
  return ((2 * (node - (1 << row)) + 1) << (depth - 1 - row)) - 1;
}

/// Fills tree[1] to tree[2^depth - 1] from the sorted keys that `sorted` gives by index, and NaN in tree[0];
/// all threads of the block take part and must synchronise afterwards.
template <class Key, class F>
__device__ __forceinline__ void plant_tree(Key* tree, int depth, F&& sorted) {
  for (int node = threadIdx.x; node < 1 << depth; node += blockDim.x)
    tree[node] = node > 0 ? sorted(sorted_index(node, depth)) : greatest_key<Key>;
}

/// leaf - 2^depth = the number of keys of the tree that are <= the key. All keys take one step before any
/// takes the next, so that their loads overlap.
template <int count, class Key>
__device__ __forceinline__ void descend(const Key* tree, int depth, const Key (&keys)[count],
                                        std::uint32_t (&leaf)[count]) {
  constexpr std::uint32_t one = sizeof(Key);  // nodes in bytes, as addresses want them
#pragma unroll
  for (int i = 0; i < count; ++i) leaf[i] = one;
#pragma unroll 4
  for (int level = 0; level < depth; ++level) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Key node = *reinterpret_cast<const Key*>(reinterpret_cast<const char*>(tree) + leaf[i]);
      leaf[i] = 2 * leaf[i] + (node <= keys[i] ? one : 0);
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) leaf[i] /= one;
}

/// The greatest key that is <= the one whose path ended here: where the path last turned right. NaN if none.
template <class Key>
__device__ __forceinline__ Key floor_of(const Key* tree, std::uint32_t leaf) {
  return tree[leaf >> __ffs(static_cast<int>(leaf))];
}

/// Values that a thread takes at once.
inline constexpr int values_at_once = 8;

/// f(keys, valid) for all elements of a dense column, divided among the blocks of a row of the grid. The
/// first `valid` of its values_at_once keys count: all of them, or one where a tile is not full.
template <int threads, class T, class F>
__device__ __forceinline__ void for_each_key(const T* column, std::int64_t count, F&& f) {
  constexpr int lanes = pack_lanes<T>, tile = threads * values_at_once;
  const auto misaligned = static_cast<int>(reinterpret_cast<std::uintptr_t>(column) / sizeof(T) % lanes);
  const std::int64_t head = ::min(std::int64_t{misaligned ? lanes - misaligned : 0}, count);
  const std::int64_t tiles = (count - head) / tile;
  KeyOf<T> keys[values_at_once] = {};
  for (std::int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const T* const first = column + head + t * tile + threadIdx.x * lanes;
    Pack<T, lanes> packs[values_at_once / lanes];
#pragma unroll
    for (int p = 0; p < values_at_once / lanes; ++p) packs[p] = load_pack<lanes>(first + p * threads * lanes);
#pragma unroll
    for (int i = 0; i < values_at_once; ++i) keys[i] = ascending_key(packs[i / lanes].lane[i % lanes]);
    f(keys, values_at_once);
  }
  if (blockIdx.x != tiles % gridDim.x) return;
  const std::int64_t rest = count - tiles * tile;  // the head, and what is behind the tiles
  for (std::int64_t i = threadIdx.x; i < rest; i += threads) {
    keys[0] = ascending_key(column[i < head ? i : i + tiles * tile]);
    f(keys, 1);
  }
}

}  // namespace ferrite::cuda
