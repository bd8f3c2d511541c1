// Attention among a few positions, with no mask, and its gradients: one warp has a whole head. Nothing is
// shared between warps, no maximum has to run along, and the weights that the gradients need are made once.
#pragma once

#include "backend_cuda/kernels/attention_gradient.cuh"
#include "backend_cuda/kit/packs.cuh"

namespace ferrite::cuda::attention {

/// How a warp works: `columns`, 32 or 64: the room for those of a head; `tiles` of 16 keys. `blocks` of the
/// gradient that a multiprocessor has registers for.
template <int columns_, int tiles_>
struct Short {
  static constexpr int columns = columns_, tiles = tiles_, keys = 16 * tiles;
  static constexpr int warps = 4, block = 32 * warps;
  static constexpr int blocks = columns == 64 ? 4 - tiles : tiles == 1 ? 5 : tiles == 2 ? 4 : 2;
};

/// Rows of the tiles of queries.
__host__ __device__ constexpr int padded(std::int64_t queries) {
  return (static_cast<int>(queries) + 15) / 16 * 16;
}
/// Shared memory of one warp.
template <class T, class Short>
__host__ __device__ constexpr int short_forward_bytes(std::int64_t queries) {
  return tile_bytes<T, Short::columns>(2 * Short::keys + padded(queries));
}
template <class T, class Short>
__host__ __device__ constexpr int short_backward_bytes(std::int64_t queries) {
  return tile_bytes<T, Short::columns>(2 * Short::keys + 2 * padded(queries));
}

/// The head of a warp; is_short sees to it that 32 bits can count them, as quotients of 64 are slow.
struct ShortPlace {
  int lane;
  unsigned unit, b, h;

  __device__ __forceinline__ explicit ShortPlace(std::int64_t heads)
      : lane(threadIdx.x % 32),
        unit(blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32),
        b(unit / static_cast<unsigned>(heads)),
        h(unit % static_cast<unsigned>(heads)) {}
  template <class T>
  __device__ __forceinline__ T* memory(int bytes_per_warp) const {
    return reinterpret_cast<T*>(ptx::shared_memory() + threadIdx.x / 32 * bytes_per_warp);
  }
};

template <class T, class Short>
__global__ void __launch_bounds__(Short::block)
    short_forward_kernel(Problem p, ForwardArrays<T> in, std::int64_t total) {
  constexpr int columns = Short::columns, stride = row_stride<T, columns>;
  wait_for_earlier_kernels();
  const ShortPlace at(p.heads);
  if (at.unit >= total) return;
  const int lane = at.lane, queries = static_cast<int>(p.queries), keys = static_cast<int>(p.keys);
  T* const k_tile = at.template memory<T>(short_forward_bytes<T, Short>(p.queries));
  T* const v_tile = k_tile + Short::keys * stride;
  T* const q_tile = v_tile + Short::keys * stride;
  load_rows<Short::keys, columns, 32>(k_tile, in.k, in.k.at(at.b, at.h), 0, keys, p.depth, in.in_packs, lane);
  for (int query = 0; query < queries; query += 16)
    load_rows<16, columns, 32>(q_tile + query * stride, in.q, in.q.at(at.b, at.h), query, queries, p.depth,
                               in.in_packs, lane);
  load_rows<Short::keys, columns, 32>(v_tile, in.v, in.v.at(at.b, at.h), 0, keys, p.width, in.in_packs, lane);
  ptx::commit_copies();
  ptx::wait_for_copies<0>();
  __syncwarp();

  const float scale = p.scale * log2_of_e;
  for (int query = 0; query < queries; query += 16) {
    Sums<2 * Short::tiles> scores[1];
    auto& s = scores[0];
    multiply_rows<T, columns>(scores, LeftRows<T, columns, false>(q_tile + query * stride, lane), k_tile);
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = hidden, sum = 0;
#pragma unroll
      for (int n = 0; n < 2 * Short::tiles; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const bool exists = n < 2 * Short::tiles - 2 || n * 8 + lane % 4 * 2 + i % 2 < keys;
          s[n][i] = exists ? __fmul_rn(s[n][i], scale) : hidden;
          top = fmaxf(top, s[n][i]);
        }
      top = row_max(top);
      const float shift = top == hidden ? 0.0f : top;
#pragma unroll
      for (int n = 0; n < 2 * Short::tiles; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) sum += s[n][i] = power_of_2(s[n][i] - shift);
      sum = row_sum(sum);
      const bool sees_none = sum == 0;
      factor[half] = sees_none ? 0.0f : 1 / sum;
      const int row = query + lane / 4 + half * 8;
      if (lane % 4 == 0 && row < queries)
        *in.lse.at(at.b, at.h, row) = sees_none ? hidden : top / log2_of_e + logf(sum);
    }
    __syncwarp();
    Sums<columns / 8> output[1] = {};
    multiply_through<T, columns>(output, scores, v_tile, lane);
    store_rows<columns>(output[0], factor, in.o, in.o.at(at.b, at.h), query, queries, p.width, in.in_packs,
                        false, lane);
    __syncwarp();
  }
}

/// Of 16 rows of outputs, what a lane takes for the sums of grad * o: every second pack of row lane / 2.
template <class T, int columns>
class OutputPacks {
 public:
  /// Zeros beyond the last row and the last column.
  __device__ __forceinline__ OutputPacks(const Heads<const T>& o, const T* head, int first, int end,
                                         int width, bool in_packs, int lane)
      : lane_(lane) {
    const int row = first + lane / 2;
    const T* const from = head + row * o.row;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int column = (2 * i + lane % 2) * pack;
      if (in_packs && row < end && column + pack <= width) {
        packs_[i] = load_pack<pack>(from + column);
        continue;
      }
#pragma unroll
      for (int e = 0; e < pack; ++e)
        packs_[i].lane[e] =
            row < end && column + e < width ? from[(column + e) * o.column] : convert_to<T>(0.0f);
    }
  }
  /// The sum of row lane / 2, from the tile of gradients.
  __device__ __forceinline__ float times(const T* grad_tile) const {
    const T* const row = grad_tile + lane_ / 2 * row_stride<T, columns> + lane_ % 2 * pack;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const Pack<T, pack> grad = load_pack<pack>(row + 2 * i * pack);
#pragma unroll
      for (int e = 0; e < pack; ++e)
        sum += convert_to<float>(grad.lane[e]) * convert_to<float>(packs_[i].lane[e]);
    }
    return sum + __shfl_xor_sync(0xffffffffu, sum, 1);
  }

 private:
  static constexpr int pack = pack_lanes<T>, count = columns / pack / 2;
  int lane_;
  Pack<T, pack> packs_[count];
};

/// The gradients of all three. Scores lie with keys as rows, as the sums for keys and values need them.
template <class T, class Short>
__global__ void __launch_bounds__(Short::block, Short::blocks)
    short_backward_kernel(Problem p, BackwardArrays<T> in, Gradient<T> dq, Gradient<T> dk, Gradient<T> dv,
                          std::int64_t total) {
  constexpr int columns = Short::columns, tiles = Short::tiles, stride = row_stride<T, columns>;
  wait_for_earlier_kernels();
  const ShortPlace at(p.heads);
  if (at.unit >= total) return;
  const int lane = at.lane, queries = static_cast<int>(p.queries), keys = static_cast<int>(p.keys);
  T* const k_tile = at.template memory<T>(short_backward_bytes<T, Short>(p.queries));
  T* const v_tile = k_tile + Short::keys * stride;
  T* const q_tiles = v_tile + Short::keys * stride;
  T* const grad_tiles = q_tiles + padded(queries) * stride;
  load_rows<Short::keys, columns, 32>(k_tile, in.k, in.k.at(at.b, at.h), 0, keys, p.depth, in.in_packs, lane);
  load_rows<Short::keys, columns, 32>(v_tile, in.v, in.v.at(at.b, at.h), 0, keys, p.width, in.in_packs, lane);
  for (int query = 0; query < queries; query += 16) {
    load_rows<16, columns, 32>(q_tiles + query * stride, in.q, in.q.at(at.b, at.h), query, queries, p.depth,
                               in.in_packs, lane);
    load_rows<16, columns, 32>(grad_tiles + query * stride, in.grad, in.grad.at(at.b, at.h), query, queries,
                               p.width, in.in_packs, lane);
  }
  ptx::commit_copies();
  ptx::wait_for_copies<0>();
  __syncwarp();

  const float scale = p.scale * log2_of_e, factor[2] = {late_scale<T>(p), late_scale<T>(p)};
  Sums<columns / 8> dk_sum[tiles] = {}, dv_sum[tiles] = {};
  for (int query = 0; query < queries; query += 16) {
    const T *const q_tile = q_tiles + query * stride, *const grad_tile = grad_tiles + query * stride;
    const OutputPacks<T, columns> o(in.o, in.o.at(at.b, at.h), query, queries, p.width, in.in_packs, lane);
    Sums<2> s[tiles], ds[tiles];  // ds: first the gradient of the weights
    multiply_rows<T, columns>(s, LeftRows<T, columns, false, tiles>(k_tile, lane), q_tile);
    multiply_rows<T, columns>(ds, LeftRows<T, columns, false, tiles>(v_tile, lane), grad_tile);
    const float own_delta = o.times(grad_tile);
    // A lane has 4 queries, and of the keys every eighth.
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int place = n * 8 + lane % 4 * 2 + e, column = query + place;
        const float lse = column < queries
                              ? finite_lse(in.lse[(at.b * p.heads + at.h) * queries + column]) * log2_of_e
                              : 0.0f;
        const float delta = __shfl_sync(0xffffffffu, own_delta, 2 * place);
#pragma unroll
        for (int tile = 0; tile < tiles; ++tile)
#pragma unroll
          for (int i = e; i < 4; i += 2) {
            const bool exists = tile < tiles - 1 || tile * 16 + lane / 4 + i / 2 * 8 < keys;
            float& weight = s[tile][n][i];
            weight = exists ? power_of_2(fmaf(weight, scale, -lse)) : 0.0f;
            ds[tile][n][i] = weight * (ds[tile][n][i] - delta) * early_scale<T>(p);
          }
      }
    multiply_through<T, columns>(dv_sum, s, grad_tile, lane);
    multiply_through<T, columns>(dk_sum, ds, q_tile, lane);
    Sums<columns / 8> dq_sum = {};
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
      multiply_transposed<T, columns>(dq_sum, ds[tile], k_tile + tile * 16 * stride, lane);
    store_rows<columns>(dq_sum, factor, dq.to, dq.to.at(at.b, at.h), query, queries, p.depth, dq.in_packs,
                        dq.add, lane);
    __syncwarp();
  }
  const float one[2] = {1, 1};
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    store_rows<columns>(dk_sum[tile], factor, dk.to, dk.to.at(at.b, at.h), tile * 16, keys, p.depth,
                        dk.in_packs, dk.add, lane);
    store_rows<columns>(dv_sum[tile], one, dv.to, dv.to.at(at.b, at.h), tile * 16, keys, p.width, dv.in_packs,
                        dv.add, lane);
  }
}

/// Calls f.template operator()<Short>() with the smallest that holds a head (see is_short).
template <class F>
void visit_short(const Problem& p, F&& f) {
  const auto tiles = divide_up(p.keys, 16);
  if (std::max(p.depth, p.width) > 32)
    return tiles == 1 ? f.template operator()<Short<64, 1>>() : f.template operator()<Short<64, 2>>();
  if (tiles == 1) return f.template operator()<Short<32, 1>>();
  if (tiles == 2) return f.template operator()<Short<32, 2>>();
  if (tiles == 3) return f.template operator()<Short<32, 3>>();
  f.template operator()<Short<32, 4>>();
}

template <class T>
void attend_short(const Call& call, const Problem& p, std::int64_t batch, const ForwardArrays<T>& arrays) {
  visit_short(p, [&]<class Short>() {
    static_assert(
        fits_into_shared<T>(Short::warps * short_forward_bytes<T, Short>(longest_short(Short::columns)),
                            Short::columns, 1, Direction::forward));
    launch_groups(call, short_forward_kernel<T, Short>, batch * p.heads, Short::warps, Short::block,
                  short_forward_bytes<T, Short>(p.queries), p, arrays);
  });
}

template <class T>
void attend_short_backward(const Call& call, const Problem& p, std::int64_t batch,
                           const BackwardArrays<T>& arrays, const Gradient<T>& dq, const Gradient<T>& dk,
                           const Gradient<T>& dv) {
  visit_short(p, [&]<class Short>() {
    static_assert(
        fits_into_shared<T>(Short::warps * short_backward_bytes<T, Short>(longest_short(Short::columns)),
                            Short::columns, 1, Direction::backward));
    launch_groups(call, short_backward_kernel<T, Short>, batch * p.heads, Short::warps, Short::block,
                  short_backward_bytes<T, Short>(p.queries), p, arrays, dq, dk, dv);
  });
}

}  // namespace ferrite::cuda::attention
