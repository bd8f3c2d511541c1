// The kernel of cached_attention: a block takes up to four queries of one group of heads, and a range of the
// keys. The blocks of a cluster share the keys of their queries; each sends what it found to the first, which
// adds that up in a fixed order (Dao et al., 2023: Flash-Decoding, with a cluster in place of a second pass).
//
// The new rows are read from k and v, never from the cache, into which one block writes them meanwhile.
#pragma once

#include "backend_cuda/kit/cached_attention.hpp"
#include "backend_cuda/kit/packs.cuh"
#include "backend_cuda/kit/ptx.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda::cached_attention {

constexpr int warps = 8, threads = 32 * warps, most_parts = 8;
constexpr float hidden = -std::numeric_limits<float>::infinity();

/// Threads that share a key: 64 columns in packs of 16 bytes. `packs` of each thread make up to 256 columns.
template <class C>
inline constexpr int threads_per_key = 64 / pack_lanes<C>;
template <class C>
inline constexpr int keys_at_once = threads / threads_per_key<C>;
/// Keys that a thread has under way.
constexpr int keys_in_flight(int packs) { return packs == 1 ? 4 : packs == 2 ? 2 : 1; }

/// exp(x - top), 0 for what is hidden even if all is.
__device__ __forceinline__ float weight_of(float x, float top) { return x == hidden ? 0.0f : expf(x - top); }

/// A new row as the cache will hold it.
template <class Q, class C>
__device__ __forceinline__ Pack<C, pack_lanes<C>> load_new(const Q* at) {
  constexpr int lanes = pack_lanes<C>, given = pack_lanes<Q>;
  if constexpr (std::is_same_v<Q, C>) {
    return load_pack<lanes>(at);
  } else {
    Pack<C, lanes> pack;
#pragma unroll
    for (int i = 0; i < lanes; i += given) {
      const Pack<Q, given> part = load_pack<given>(at + i);
#pragma unroll
      for (int j = 0; j < given; ++j) pack.lane[i + j] = convert_to<C>(part.lane[j]);
    }
    return pack;
  }
}

/// What a thread knows of one query: the highest score, the sum of the weights, and its columns of the
/// weighted sum of values.
template <int columns>
struct Found {
  float top = hidden, sum = 0;
  float values[columns] = {};

  __device__ __forceinline__ void rescale(float higher) {
    const float factor = weight_of(top, higher);
    top = higher;
    sum *= factor;
#pragma unroll
    for (int i = 0; i < columns; ++i) values[i] *= factor;
  }
  /// Adds what the thread `distance` lanes away has found of other keys, for the same columns.
  __device__ __forceinline__ void add_other(int distance) {
    const float other_top = __shfl_xor_sync(0xffffffffu, top, distance);
    const float other_sum = __shfl_xor_sync(0xffffffffu, sum, distance);
    const float higher = fmaxf(top, other_top);
    const float factor = weight_of(top, higher), other = weight_of(other_top, higher);
    top = higher;
    sum = sum * factor + other_sum * other;
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const float value = __shfl_xor_sync(0xffffffffu, values[i], distance);
      values[i] = values[i] * factor + value * other;
    }
  }
};

/// Shared memory: what the warps found, and what the blocks of the cluster found, which only the first uses.
struct Memory {
  float* warp_values;   // [warps][rows][depth]
  float2* warp_sums;    // [warps][rows]: top, sum
  float* block_values;  // [parts][rows][depth]
  float2* block_sums;   // [parts][rows]

  __device__ Memory(void* memory, int rows, int depth, int parts)
      : warp_values(static_cast<float*>(memory)),
        warp_sums(reinterpret_cast<float2*>(warp_values + warps * rows * depth)),
        block_values(reinterpret_cast<float*>(warp_sums + warps * rows)),
        block_sums(reinterpret_cast<float2*>(block_values + parts * rows * depth)) {}
  static int bytes(int rows, int depth, int parts) {
    return static_cast<int>(sizeof(float)) * (warps + parts) * rows * (depth + 2);
  }
};

/// The sums over `count` parts that were found apart, of one row and column.
struct Joined {
  float top = hidden, sum = 0, value = 0;

  /// `values` are `stride` elements apart, `sums` are `rows` apart.
  template <int most>
  static __device__ __forceinline__ Joined of(const float* values, const float2* sums, int stride, int rows,
                                              int count) {
    Joined all;
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (i < count) all.top = fmaxf(all.top, sums[i * rows].x);
#pragma unroll
    for (int i = 0; i < most; ++i) {
      if (i >= count) continue;
      const float weight = weight_of(sums[i * rows].x, all.top);
      all.sum += sums[i * rows].y * weight;
      all.value += values[i * stride] * weight;
    }
    return all;
  }
};

/// The keys that the queries of a text see, of which each part takes its share. A wrong count is brought into
/// the range that it may have.
template <class Q, class C>
struct KeyRange {
  int read, begin, end;

  __device__ __forceinline__ KeyRange(const Args<Q, C>& args, int count, int part, int parts)
      : read(::max(0, ::min(count, args.capacity - args.queries))) {
    const int first = ::max(0, read + 1 - args.window), all = read + args.queries;
    const int share = (all - first + parts - 1) / parts;
    begin = first + part * share;
    end = ::min(all, begin + share);
  }
};

/// Asks for the first keys and values of a block before it may read them; of more, the L2 cache would lose
/// some again. How many there are may still change: a wrong guess fetches what is not used.
template <class Q, class C>
__device__ void prefetch_cache(const Args<Q, C>& args, std::int64_t n, std::int64_t group, int part,
                               int parts) {
#if __CUDA_ARCH__ >= 900  // before Hopper there is nothing to wait for
  constexpr int line = 128 / static_cast<int>(sizeof(C));
  const int guess = *static_cast<const volatile std::int32_t*>(args.read + n);  // not by way of a stale line
  const KeyRange<Q, C> keys(args, guess, part, parts);
  const int key = keys.begin + static_cast<int>(threadIdx.x);
  if (key >= keys.end) return;
  for (int column = 0; column < args.depth; column += line) {
    prefetch(args.keys.at(n, group) + key * args.keys.row + column);
    prefetch(args.values.at(n, group) + key * args.values.row + column);
  }
#endif
}

/// Grid: parts of the keys (one cluster), groups of heads times blocks of queries, texts.
template <class Q, class C, int packs, int rows>
__global__ void __launch_bounds__(threads) kernel(const __grid_constant__ Args<Q, C> args) {
  constexpr int lanes = pack_lanes<C>, columns = packs * lanes;  // of a thread
  constexpr int per_key = threads_per_key<C>, in_flight = keys_in_flight(packs);
  const int rank = ptx::block_in_cluster(), parts = ptx::cluster_blocks();
  const int row_blocks = (args.rows + rows - 1) / rows;
  const std::int64_t n = blockIdx.z, group = static_cast<int>(blockIdx.y) / row_blocks;
  const int first_row = static_cast<int>(blockIdx.y) % row_blocks * rows;
  // This block has begun: others may write into its shared memory.
  if (parts > 1) ptx::arrive_at_cluster_empty_handed();
  prefetch_cache(args, n, group, rank, parts);
  wait_for_earlier_kernels();
  const KeyRange<Q, C> own(args, args.read[n], rank, parts);
  const int read = own.read, begin = own.begin, end = own.end;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int in_key = lane % per_key, own_key = static_cast<int>(threadIdx.x) / per_key;
  const auto column_of = [&](int pack) { return (pack * per_key + in_key) * lanes; };
  const Q *const new_keys = args.k.at(n, group), *const new_values = args.v.at(n, group);
  C *const keys = args.keys.at(n, group), *const values = args.values.at(n, group);

  // Row r of a group is query r % queries of its head r / queries.
  const auto head_of = [&](int row) { return group * (args.rows / args.queries) + row / args.queries; };
  float q[rows][columns] = {};
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int row = ::min(first_row + r, args.rows - 1);  // what is beyond is not stored
    const Q* const from = args.q.at(n, head_of(row)) + (row % args.queries) * args.q.row;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (column_of(p) >= args.depth) continue;
#pragma unroll
      for (int i = 0; i < lanes; i += pack_lanes<Q>) {
        const auto given = load_pack<pack_lanes<Q>>(from + column_of(p) + i);
#pragma unroll
        for (int j = 0; j < pack_lanes<Q>; ++j)
          q[r][p * lanes + i + j] = convert_to<float>(given.lane[j]) * args.scale;
      }
    }
  }

  Found<columns> found[rows];
  for (int start = begin; start < end; start += in_flight * keys_at_once<C>) {
    Pack<C, lanes> k[in_flight][packs], v[in_flight][packs];
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const int key = start + u * keys_at_once<C> + own_key;
#pragma unroll
      for (int p = 0; p < packs; ++p) {
        k[u][p] = v[u][p] = {};
        const int column = column_of(p);
        if (key >= end || column >= args.depth) continue;
        if (key < read) {
          k[u][p] = load_pack<lanes>(keys + key * args.keys.row + column);
          v[u][p] = load_pack<lanes>(values + key * args.values.row + column);
        } else {
          k[u][p] = load_new<Q, C>(new_keys + (key - read) * args.k.row + column);
          v[u][p] = load_new<Q, C>(new_values + (key - read) * args.v.row + column);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int query = ::min(first_row + r, args.rows - 1) % args.queries;
      float score[in_flight], top = found[r].top;
#pragma unroll
      for (int u = 0; u < in_flight; ++u) {
        const int key = start + u * keys_at_once<C> + own_key;
        float product = 0;
#pragma unroll
        for (int p = 0; p < packs; ++p) {
#pragma unroll
          for (int i = 0; i < lanes; ++i)
            product = fmaf(q[r][p * lanes + i], convert_to<float>(k[u][p].lane[i]), product);
        }
#pragma unroll
        for (int distance = per_key / 2; distance > 0; distance /= 2)
          product += __shfl_xor_sync(0xffffffffu, product, distance);
        const int distance = read + query - key;
        score[u] = key < end && distance >= 0 && distance < args.window ? product : hidden;
        top = fmaxf(top, score[u]);
      }
      found[r].rescale(top);
#pragma unroll
      for (int u = 0; u < in_flight; ++u) {
        const float weight = weight_of(score[u], top);
        found[r].sum += weight;
#pragma unroll
        for (int p = 0; p < packs; ++p) {
#pragma unroll
          for (int i = 0; i < lanes; ++i)
            found[r].values[p * lanes + i] =
                fmaf(weight, convert_to<float>(v[u][p].lane[i]), found[r].values[p * lanes + i]);
        }
      }
    }
  }

  const Memory memory(ptx::shared_memory(), rows, args.depth, parts);
#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int distance = per_key; distance < 32; distance *= 2) found[r].add_other(distance);
    if (lane >= per_key) continue;
    if (lane == 0) memory.warp_sums[warp * rows + r] = {found[r].top, found[r].sum};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
#pragma unroll
      for (int i = 0; i < lanes; ++i)
        if (column_of(p) + i < args.depth)
          memory.warp_values[(warp * rows + r) * args.depth + column_of(p) + i] =
              found[r].values[p * lanes + i];
    }
  }
  __syncthreads();
  const auto place_of = [&](int row) {
    return args.o.at(n, head_of(row)) + (row % args.queries) * args.o.row;
  };
  const int found_cells = rows * args.depth;
  if (parts > 1) ptx::wait_for_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < found_cells; i += threads) {
    const int r = i / args.depth, column = i % args.depth;
    const Joined all =
        Joined::of<warps>(memory.warp_values + i, memory.warp_sums + r, found_cells, rows, warps);
    if (parts > 1) {
      ptx::store_in_block(memory.block_values + rank * found_cells + i, 0, all.value);
      float2* const sums = memory.block_sums + rank * rows + r;
      if (column == 0) ptx::store_in_block(&sums->x, 0, all.top);
      if (column == 0) ptx::store_in_block(&sums->y, 0, all.sum);
    } else if (first_row + r < args.rows) {
      place_of(first_row + r)[column] = convert_to<Q>(all.value / all.sum);
    }
  }
  if (parts > 1) ptx::arrive_at_cluster();

  if (rank == parts - 1 && first_row == 0) {
    const int row_packs = args.depth / lanes;
    for (int i = static_cast<int>(threadIdx.x); i < args.queries * row_packs; i += threads) {
      const int row = i / row_packs, column = i % row_packs * lanes;
      store_pack<lanes>(keys + (read + row) * args.keys.row + column,
                        load_new<Q, C>(new_keys + row * args.k.row + column));
      store_pack<lanes>(values + (read + row) * args.values.row + column,
                        load_new<Q, C>(new_values + row * args.v.row + column));
    }
  }
  if (parts == 1 || rank > 0) return;
  ptx::wait_for_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < found_cells; i += threads) {
    const int r = i / args.depth, column = i % args.depth;
    if (first_row + r >= args.rows) break;
    const Joined all =
        Joined::of<most_parts>(memory.block_values + i, memory.block_sums + r, found_cells, rows, parts);
    place_of(first_row + r)[column] = convert_to<Q>(all.value / all.sum);
  }
}

template <class Q, class C, int packs, int rows>
void launch_variant(const Call& call, const Args<Q, C>& args) {
  const int row_blocks = divide_up(args.rows, rows);
  const std::int64_t blocks = args.texts * args.groups * row_blocks;
  const std::int64_t enough = 2 * call.properties().multiProcessorCount;
  const int most_keys = ::min(args.capacity, args.window + args.queries - 1);
  int parts = 1;
  while (runs_hopper_code() && parts < most_parts && blocks * parts < enough &&
         most_keys > parts * keys_in_flight(packs) * keys_at_once<C>)
    parts *= 2;
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(args.groups * row_blocks),
                  static_cast<unsigned>(args.texts));
  cuda::launch(call, kernel<Q, C, packs, rows>, grid,
               BlockSize{threads, Memory::bytes(rows, args.depth, parts), parts}, args, Start::early);
}

template <class Q, class C>
void launch(const Call& call, const Args<Q, C>& args) {
  const bool one = args.rows == 1;
  if (args.depth <= 64)
    return one ? launch_variant<Q, C, 1, 1>(call, args) : launch_variant<Q, C, 1, 4>(call, args);
  if (args.depth <= 128)
    return one ? launch_variant<Q, C, 2, 1>(call, args) : launch_variant<Q, C, 2, 4>(call, args);
  launch_variant<Q, C, 4, 1>(call, args);  // more queries would not fit into the registers
}

}  // namespace ferrite::cuda::cached_attention
