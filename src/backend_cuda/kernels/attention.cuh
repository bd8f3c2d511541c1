// Attention on tensor cores, any mask, sizes and layouts: for each tile of queries the keys pass by tile by
// tile, with a running maximum and sum per query (Milakov and Gimelshein 2018; Dao, FlashAttention-2, 2023).
// Scores are in f32. With values of 16 bits, weights are rounded to 16 bits for the product with them.
#pragma once

#include "backend_cuda/kit/attention.hpp"
#include "backend_cuda/kit/attention_tiles_f32.cuh"

namespace ferrite::cuda::attention {

/// How a block works. `columns`: 32, 64, 128 or 256, the room for those of a head. Each warp has 16 rows;
/// `warps` of them share a head, and a block has `groups` of these, so that short sequences fill it too.
template <int columns_, int warps_, int other_, bool keeps_>
struct Blocking {
  static constexpr int columns = columns_, warps = warps_, groups = 4 / warps;
  static constexpr int rows = 16 * warps;  // of the tile that stays
  static constexpr int other = other_;     // rows of the tiles that pass by
  static constexpr bool keeps = keeps_;    // whether left operands stay in registers
  static constexpr int threads = 32 * warps, block = threads * groups;
};

/// The part of the work of one group of warps.
template <class Blocking>
struct Place {
  int thread, warp, lane;
  std::int64_t b, h, tile;  // h: the head of what stays
  bool idle;                // beyond the last; works on another's part, and stores nothing

  /// `longest_last`: causal tiles differ in length, and long ones should start first.
  __device__ __forceinline__ Place(std::int64_t heads, std::int64_t tiles, std::int64_t total,
                                   bool longest_last)
      : thread(threadIdx.x % Blocking::threads), warp(thread / 32), lane(thread % 32) {
    const int group = threadIdx.x / Blocking::threads;
    std::int64_t unit = std::int64_t{blockIdx.x} * Blocking::groups + group;
    idle = unit >= total;
    if (idle) unit = total - 1;
    const std::int64_t head = unit / tiles;
    b = head / heads, h = head % heads;
    tile = longest_last ? tiles - 1 - unit % tiles : unit % tiles;
  }
  /// The shared memory of this group.
  template <class T>
  __device__ __forceinline__ T* memory(int bytes_per_group) const {
    return reinterpret_cast<T*>(ptx::shared_memory() + threadIdx.x / Blocking::threads * bytes_per_group);
  }
};

/// log-sum-exp of each query, of any strides.
struct Statistics {
  float* data;
  std::int64_t batch, head, row;
  __device__ float* at(std::int64_t b, std::int64_t h, std::int64_t query) const {
    return data + b * batch + h * head + query * row;
  }
};

template <class T>
struct ForwardArrays {
  Heads<const T> q, k, v;
  Heads<T> o;
  Statistics lse;
  bool in_packs;  // all of them: see load_rows
};

/// Of the tiles that pass by: the next one arrives while one is read.
constexpr int buffers_for(std::int64_t length, int tile) { return length > tile ? 2 : 1; }

/// Shared memory of one group.
template <class T, class Blocking>
constexpr int forward_bytes(const Problem& p) {
  return tile_bytes<T, Blocking::columns>(Blocking::rows +
                                          2 * Blocking::other * buffers_for(p.keys, Blocking::other));
}

template <class T, class Blocking>
__global__ void __launch_bounds__(Blocking::block)
    forward_kernel(Problem p, ForwardArrays<T> in, std::int64_t tiles, std::int64_t total) {
  constexpr int columns = Blocking::columns, other = Blocking::other, n_tiles = other / 8,
                stride = row_stride<T, columns>, threads = Blocking::threads;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads, tiles, total, p.causal);
  T* const q_tile = at.template memory<T>(forward_bytes<T, Blocking>(p));
  T* const k_tiles = q_tile + Blocking::rows * stride;
  T* const v_tiles = k_tiles + buffers_for(p.keys, other) * other * stride;
  const std::int64_t first = at.tile * Blocking::rows, key_head = at.h / p.group;
  const Range keys = p.keys_of(first, ::min(first + Blocking::rows, p.queries));
  const T *const k = in.k.at(at.b, key_head), *const v = in.v.at(at.b, key_head);
  const auto load_keys = [&](std::int64_t key, int buffer) {
    load_rows<other, columns, threads>(k_tiles + buffer * other * stride, in.k, k, key, p.keys, p.depth,
                                       in.in_packs, at.thread);
    load_rows<other, columns, threads>(v_tiles + buffer * other * stride, in.v, v, key, p.keys, p.width,
                                       in.in_packs, at.thread);
  };

  load_rows<Blocking::rows, columns, threads>(q_tile, in.q, in.q.at(at.b, at.h), first, p.queries, p.depth,
                                              in.in_packs, at.thread);
  const std::int64_t start = keys.first / other * other;
  if (start < keys.last) load_keys(start, 0);
  ptx::commit_copies();

  const int own_row = at.warp * 16;
  LeftRows<T, columns, Blocking::keeps> q(q_tile + own_row * stride, at.lane);
  Sums<columns / 8> output = {};
  float top[2] = {hidden, hidden}, sum[2] = {0, 0};
  int buffer = 0;
  for (std::int64_t key = start; key < keys.last; key += other, buffer ^= 1) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the tiles have arrived, and nobody reads the other buffer any more
    if (key == start) q.keep();
    if (key + other < keys.last) load_keys(key + other, buffer ^ 1);
    ptx::commit_copies();

    Sums<n_tiles> s;
    multiply_rows<T, columns>(s, q, k_tiles + buffer * other * stride);
    if (p.all_seen(first, first + Blocking::rows, key, key + other)) {
#pragma unroll
      for (int n = 0; n < n_tiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[n][i] = __fmul_rn(s[n][i], p.scale);  // as the maximum sees it
    } else {
      const int column = static_cast<int>(key) + at.lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Line line = p.line_of_query(at.b, at.h, first + own_row + at.lane / 4 + half * 8);
#pragma unroll
        for (int n = 0; n < n_tiles; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            s[n][2 * half + e] = p.score(s[n][2 * half + e], line, column + n * 8 + e);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float highest = hidden;
#pragma unroll
      for (int n = 0; n < n_tiles; ++n) highest = fmaxf(highest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      highest = fmaxf(top[half], row_max(highest));
      const float shift = highest == hidden ? 0.0f : highest;
      const float factor = power_of_2((top[half] - shift) * log2_of_e);
      top[half] = highest;
      float part = 0;
#pragma unroll
      for (int n = 0; n < n_tiles; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          // The difference first: masks of -1e9 and beyond must leave the largest at 1.
          s[n][i] = power_of_2((s[n][i] - shift) * log2_of_e);
          part += s[n][i];
        }
      sum[half] = sum[half] * factor + part;
#pragma unroll
      for (int n = 0; n < columns / 8; ++n) output[n][2 * half] *= factor, output[n][2 * half + 1] *= factor;
    }
    multiply_through<T, columns>(output, s, v_tiles + buffer * other * stride, at.lane);
  }
  ptx::wait_for_copies<0>();
  if (at.idle) return;
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float weight = row_sum(sum[half]);
    const bool sees_none = weight == 0;
    factor[half] = sees_none ? 0.0f : 1 / weight;
    const std::int64_t query = first + own_row + at.lane / 4 + half * 8;
    if (at.lane % 4 == 0 && query < p.queries)
      *in.lse.at(at.b, at.h, query) = sees_none ? hidden : top[half] + logf(weight);
  }
  store_rows<columns>(output, factor, in.o, in.o.at(at.b, at.h), first + own_row, p.queries, p.width,
                      in.in_packs, false, at.lane);
}

/// Calls f.template operator()<Blocking>() with the smallest that holds a head's columns, and all of its rows
/// if they are few. The figures behind the choices for 16 bits: benches/results/2026-11-17-h200-attention.
template <int other, bool keeps_64, bool keeps_128, int other_256, class F>
void visit_blocking(int columns, std::int64_t rows, F&& f) {
  const auto few_rows = [&]<int most, bool keeps>() {
    if (rows <= 16)
      f.template operator()<Blocking<most, 1, 16, true>>();
    else if (rows <= 32)
      f.template operator()<Blocking<most, 2, 32, keeps>>();
    else
      f.template operator()<Blocking<most, 4, other, keeps>>();
  };
  if (columns <= 32)
    few_rows.template operator()<32, true>();
  else if (columns <= 64)
    few_rows.template operator()<64, keeps_64>();
  else if (columns <= 128)
    f.template operator()<Blocking<128, 4, other, keeps_128>>();
  else
    f.template operator()<Blocking<256, 4, other_256, false>>();
}

/// The same for tiles of f32, which take twice the memory: heads have at most 128 columns. Figures:
/// benches/results/2026-11-19-h200-attention-f32.
template <int other_128, class F>
void visit_blocking_f32(int columns, std::int64_t rows, F&& f) {
  const auto few_rows = [&]<int most>() {
    if (rows <= 16)
      f.template operator()<Blocking<most, 1, 16, false>>();
    else if (rows <= 32)
      f.template operator()<Blocking<most, 2, 32, false>>();
    else
      f.template operator()<Blocking<most, 4, 32, false>>();
  };
  if (columns <= 32)
    few_rows.template operator()<32>();
  else if (columns <= 64)
    few_rows.template operator()<64>();
  else
    f.template operator()<Blocking<128, 4, other_128, false>>();
}

template <class T>
void attend(const Call& call, const Problem& p, const Array& q, const Array& k, const Array& v,
            const Array& o, const Array& lse) {
  const Shape& strides = lse.layout().strides;
  const ForwardArrays<T> arrays{Heads<const T>::of(q),
                                Heads<const T>::of(k),
                                Heads<const T>::of(v),
                                Heads<T>::of(o),
                                {lse.data<float>(), strides[0], strides[1], strides[2]},
                                lies_in_packs(q) && lies_in_packs(k) && lies_in_packs(v) && lies_in_packs(o)};
  const auto run = [&]<class Blocking>() {
    const std::int64_t tiles = divide_up(p.queries, Blocking::rows);
    launch_groups(call, forward_kernel<T, Blocking>, q.shape()[0] * p.heads * tiles, Blocking::groups,
                  Blocking::block, forward_bytes<T, Blocking>(p), p, arrays, tiles);
  };
  const int columns = std::max(p.depth, p.width);
  if constexpr (std::is_same_v<T, float>)
    visit_blocking_f32<32>(columns, p.queries, run);
  else
    visit_blocking<64, true, true, 32>(columns, p.queries, run);
}

}  // namespace ferrite::cuda::attention
