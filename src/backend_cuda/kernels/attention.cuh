// Attention on tensor cores, any mask, sizes and layouts: for each tile of queries the keys pass by tile by
// tile, with a running maximum and sum per query (Milakov and Gimelshein 2018; Dao, FlashAttention-2, 2023).
// Scores are in f32. With values of 16 bits, weights are rounded to 16 bits for the product with them.
#pragma once

#include "backend_cuda/kit/attention.hpp"
#include "backend_cuda/kit/attention_tiles_f32.cuh"

namespace ferrite::cuda::attention {

/// How a block works. `columns`: 32, 64, 128 or 256, the room for those of a head. Each warp has `parts`
/// times 16 rows; `warps` of them share a head, and a block has `groups` of these, so that short sequences
/// fill it too.
template <int columns_, int warps_, int other_, bool keeps_, int parts_ = 1, int at_once_ = other_>
struct Blocking {
  static constexpr int columns = columns_, warps = warps_, groups = 4 / warps;
  static constexpr int parts = parts_, own = 16 * parts;  // rows of a warp
  static constexpr int rows = own * warps;                // of the tile that stays
  static constexpr int other = other_;                    // rows of the tiles that pass by
  static constexpr int at_once = at_once_;                // of them, in one step
  static constexpr bool keeps = keeps_;                   // whether left operands stay in registers
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

/// More positions than any tile has rows.
constexpr std::int64_t many = 1 << 20;

/// Of the tiles that pass by: the next one arrives while one is read.
constexpr int buffers_for(std::int64_t length, int tile) { return length > tile ? 2 : 1; }

/// Shared memory of one group.
template <class T, class Blocking>
constexpr int forward_bytes(std::int64_t keys) {
  return tile_bytes<T, Blocking::columns>(Blocking::rows +
                                          2 * Blocking::other * buffers_for(keys, Blocking::other));
}

template <class T, class Blocking>
__global__ void __launch_bounds__(Blocking::block)
    forward_kernel(Problem p, ForwardArrays<T> in, std::int64_t tiles, std::int64_t total) {
  constexpr int columns = Blocking::columns, other = Blocking::other, at_once = Blocking::at_once,
                n_tiles = at_once / 8, stride = row_stride<T, columns>, threads = Blocking::threads;
  wait_for_earlier_kernels();
  const Place<Blocking> at(p.heads, tiles, total, p.causal);
  T* const q_tile = at.template memory<T>(forward_bytes<T, Blocking>(p.keys));
  T* const k_tiles = q_tile + Blocking::rows * stride;
  T* const v_tiles = k_tiles + buffers_for(p.keys, other) * other * stride;
  const std::int64_t first = at.tile * Blocking::rows, key_head = at.h / p.group;
  const Range keys = p.keys_of(first, ::min(first + Blocking::rows, p.queries)),
              plain_keys = p.keys_of_all(first, first + Blocking::rows);
  const RowLoader<other, columns, threads, T> k(in.k, in.k.at(at.b, key_head), p.keys, p.depth, in.in_packs,
                                                at.thread),
      v(in.v, in.v.at(at.b, key_head), p.keys, p.width, in.in_packs, at.thread);
  const auto load_keys = [&](std::int64_t key, int buffer) {
    k.load(k_tiles + buffer * other * stride, key);
    v.load(v_tiles + buffer * other * stride, key);
  };

  load_rows<Blocking::rows, columns, threads>(q_tile, in.q, in.q.at(at.b, at.h), first, p.queries, p.depth,
                                              in.in_packs, at.thread);
  const std::int64_t start = keys.first / other * other;
  if (start < keys.last) load_keys(start, 0);
  ptx::commit_copies();

  constexpr int parts = Blocking::parts;
  const int own_row = at.warp * Blocking::own;
  LeftRows<T, columns, Blocking::keeps, parts> q(q_tile + own_row * stride, at.lane);
  Sums<columns / 8> output[parts] = {};
  float top[parts][2], sum[parts][2] = {};
#pragma unroll
  for (int part = 0; part < parts; ++part) top[part][0] = top[part][1] = hidden;
  int buffer = 0;
  for (std::int64_t key = start; key < keys.last; key += other, buffer ^= 1) {
    ptx::wait_for_copies<0>();
    __syncthreads();  // the tiles have arrived, and nobody reads the other buffer any more
    if (key == start) q.keep();
    if (key + other < keys.last) load_keys(key + other, buffer ^ 1);
    ptx::commit_copies();

    // Larger products are larger scores, so that the scale can wait until the exponent.
    const bool plain = p.scale > 0 && plain_keys.holds(key, key + other);
    const auto step = [&](auto is_plain, int begin) {
      const int offset = (buffer * other + begin) * stride;
      Sums<n_tiles> s[parts];
      multiply_rows<T, columns>(s, q, k_tiles + offset);
#pragma unroll
      for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if constexpr (!is_plain) {
            const int column = static_cast<int>(key) + begin + at.lane % 4 * 2;
            const Line line =
                p.line_of_query(at.b, at.h, first + own_row + part * 16 + at.lane / 4 + half * 8);
#pragma unroll
            for (int n = 0; n < n_tiles; ++n)
#pragma unroll
              for (int e = 0; e < 2; ++e) {
                float& score = s[part][n][2 * half + e];
                score = p.score(score, line, column + n * 8 + e);
              }
          }
          float highest = hidden;
#pragma unroll
          for (int n = 0; n < n_tiles; ++n)
            highest = fmaxf(highest, fmaxf(s[part][n][2 * half], s[part][n][2 * half + 1]));
          highest = row_max(highest);
          highest = fmaxf(top[part][half], is_plain ? __fmul_rn(highest, p.scale) : highest);
          const float shift = highest == hidden ? 0.0f : highest;
          const float factor = power_of_2((top[part][half] - shift) * log2_of_e);
          top[part][half] = highest;
          float weights = 0;
#pragma unroll
          for (int n = 0; n < n_tiles; ++n)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
              float& weight = s[part][n][i];
              // The difference first: masks of -1e9 and beyond must leave the largest at 1.
              weight = power_of_2(is_plain ? fmaf(weight, p.scale * log2_of_e, -shift * log2_of_e)
                                           : (weight - shift) * log2_of_e);
              weights += weight;
            }
          sum[part][half] = sum[part][half] * factor + weights;
#pragma unroll
          for (int n = 0; n < columns / 8; ++n)
            output[part][n][2 * half] *= factor, output[part][n][2 * half + 1] *= factor;
        }
      multiply_through<T, columns>(output, s, v_tiles + offset, at.lane);
    };
    if (plain) {
#pragma unroll
      for (int begin = 0; begin < other; begin += at_once) step(std::true_type{}, begin);
    } else {
#pragma unroll 1  // it is much code
      for (int begin = 0; begin < other && key + begin < keys.last; begin += at_once)
        step(std::false_type{}, begin);
    }
  }
  ptx::wait_for_copies<0>();
  if (at.idle) return;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    const std::int64_t row = first + own_row + part * 16;
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float weight = row_sum(sum[part][half]);
      const bool sees_none = weight == 0;
      factor[half] = sees_none ? 0.0f : 1 / weight;
      const std::int64_t query = row + at.lane / 4 + half * 8;
      if (at.lane % 4 == 0 && query < p.queries)
        *in.lse.at(at.b, at.h, query) = sees_none ? hidden : top[part][half] + logf(weight);
    }
    store_rows<columns>(output[part], factor, in.o, in.o.at(at.b, at.h), row, p.queries, p.width, in.in_packs,
                        false, at.lane);
  }
}

/// Which blockings the forward kernel has: Few for up to 32 rows, by the number of warps, and others by the
/// columns of a head. The figures behind the choices for 16 bits: benches/results/2026-11-17-h200-attention,
/// and for up to 64 columns 2026-11-19-h200-attention-narrow.
template <class T>
struct ForwardBlockings {
  template <int columns, int warps>
  using Few = Blocking<columns, warps, 16 * warps, true>;
  using For32 = Blocking<32, 4, 128, true, 2, 32>;
  using For64 = Blocking<64, 4, 64, true, 2, 32>;
  using For128 = Blocking<128, 4, 64, true>;
  using For256 = Blocking<256, 4, 32, false>;
};
/// Tiles of f32 take twice the memory: heads have at most 128 columns. Figures:
/// benches/results/2026-11-19-h200-attention-f32.
template <int other_128>
struct BlockingsF32 {
  template <int columns, int warps>
  using Few = Blocking<columns, warps, 16 * warps, false>;
  using For32 = Blocking<32, 4, 32, false>;
  using For64 = Blocking<64, 4, 32, false>;
  using For128 = Blocking<128, 4, other_128, false>;
};
template <>
struct ForwardBlockings<float> : BlockingsF32<32> {};

/// Calls f.template operator()<Blocking>() with the smallest that holds a head's columns, and all of its rows
/// if they are few.
template <class Blockings, class F>
void visit_blocking(int columns, std::int64_t rows, F&& f) {
  const auto few_or = [&]<int most, class Many>() {
    if (rows <= 16)
      f.template operator()<typename Blockings::template Few<most, 1>>();
    else if (rows <= 32)
      f.template operator()<typename Blockings::template Few<most, 2>>();
    else
      f.template operator()<Many>();
  };
  if (columns <= 32) return few_or.template operator()<32, typename Blockings::For32>();
  if (columns <= 64) return few_or.template operator()<64, typename Blockings::For64>();
  if constexpr (requires { typename Blockings::For256; })
    if (columns > 128) return f.template operator()<typename Blockings::For256>();
  f.template operator()<typename Blockings::For128>();
}

/// In attention_short.cuh.
template <class T>
void attend_short(const Call& call, const Problem& p, std::int64_t batch, const ForwardArrays<T>& arrays);

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
  if constexpr (!std::is_same_v<T, float>)
    if (is_short(q.dtype(), q.shape()[0], p)) return attend_short(call, p, q.shape()[0], arrays);
  const auto run = [&]<class Blocking>() {
    static_assert(fits_into_shared<T>(Blocking::groups * forward_bytes<T, Blocking>(many), Blocking::columns,
                                      Blocking::rows, Direction::forward));
    const std::int64_t tiles = divide_up(p.queries, Blocking::rows);
    launch_groups(call, forward_kernel<T, Blocking>, q.shape()[0] * p.heads * tiles, Blocking::groups,
                  Blocking::block, forward_bytes<T, Blocking>(p.keys), p, arrays, tiles);
  };
  visit_blocking<ForwardBlockings<T>>(std::max(p.depth, p.width), p.queries, run);
}

}  // namespace ferrite::cuda::attention
