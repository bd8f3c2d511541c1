// A product of a few rows with a matrix of weights: limited by how fast the weights come, so every weight is
// read once, in 16 bytes, by as many threads as there is room for. The rows wait in shared memory, normalised
// by every block for itself: that is less work than another kernel. Sums are f32, in a fixed order. One row
// has a kernel of its own (fused_linear_row.cuh).
#pragma once

#include "backend_cuda/kit/fused_linear_row.cuh"
#include "backend_cuda/kit/fused_linear_rows.cuh"
#include "backend_cuda/kit/ptx.cuh"
#include "backend_cuda/kit/shared_memory.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda::fused_linear {

template <class T>
__device__ __forceinline__ void prefetch_all(const T* data, int count) {
  constexpr int line = 128 / static_cast<int>(sizeof(T));
  if (!data) return;
  for (int i = static_cast<int>(threadIdx.x) * line; i < count; i += threads * line) prefetch(data + i);
}

/// A warp computes per_warp columns of all rows, or its part of their inner dimension: args.parts warps that
/// follow each other share their columns.
template <class X, class W, int most_rows, int per_warp>
__global__ void __launch_bounds__(threads) kernel(const __grid_constant__ Args<X, W> args) {
  constexpr int lanes = pack_lanes<W>, fours = lanes / 4, sums = most_rows * per_warp;
  __shared__ float part_sums[warps][sums];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int part = warp % args.parts, group = warp / args.parts, groups = warps / args.parts;
  const int packs = args.inner / lanes, block_columns = groups * per_warp;
  const int first = static_cast<int>(blockIdx.x) * block_columns;
  const W* weights[per_warp];
#pragma unroll
  for (int v = 0; v < per_warp; ++v) {
    const int column = ::min(first + group * per_warp + v, args.columns - 1);  // what is beyond is not stored
    weights[v] = args.weight + column * args.weight_stride;
  }
  const int begin = part * 32 + lane, step = args.parts * 32;
#pragma unroll
  for (int v = 0; v < per_warp; ++v)
    for (int p = begin; p < ::min(packs, begin + 2 * step); p += step) prefetch(weights[v] + p * lanes);
  prefetch_all(args.norm_weight, args.inner);
  prefetch_all(args.norm_bias, args.inner);
  wait_for_earlier_kernels();

  const Rows<X, W> rows(ptx::shared_memory(), args);
  if (args.norm == RowNorm::none)
    rows.copy(static_cast<int>(threadIdx.x), threads);
  else
    for (int row = warp; row < args.rows; row += warps) rows.normalise(row, lane, 32, warp_sum);
  __syncthreads();
  float sum[most_rows][per_warp] = {};
#pragma unroll(per_warp == 1 ? 4 : 2)
  for (int p = begin; p < packs; p += step) {
    Pack<W, lanes> w[per_warp];
#pragma unroll
    for (int v = 0; v < per_warp; ++v) w[v] = load_pack<lanes>(weights[v] + p * lanes);
#pragma unroll
    for (int f = 0; f < fours; ++f) {
#pragma unroll
      for (int n = 0; n < most_rows; ++n) {
        if (n >= args.rows) continue;
        const float4 x = rows.at(n, p, f);
#pragma unroll
        for (int v = 0; v < per_warp; ++v) {
          sum[n][v] = fmaf(x.x, convert_to<float>(w[v].lane[4 * f]), sum[n][v]);
          sum[n][v] = fmaf(x.y, convert_to<float>(w[v].lane[4 * f + 1]), sum[n][v]);
          sum[n][v] = fmaf(x.z, convert_to<float>(w[v].lane[4 * f + 2]), sum[n][v]);
          sum[n][v] = fmaf(x.w, convert_to<float>(w[v].lane[4 * f + 3]), sum[n][v]);
        }
      }
    }
  }
#pragma unroll
  for (int n = 0; n < most_rows; ++n) {
#pragma unroll
    for (int v = 0; v < per_warp; ++v) {
      const float total = warp_sum(sum[n][v]);
      if (lane == 0) part_sums[warp][n * per_warp + v] = total;
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < args.rows * block_columns; i += threads) {
    const int n = i / block_columns, c = i % block_columns, column = first + c;
    if (column >= args.columns) continue;
    float y = 0;
    for (int k = 0; k < args.parts; ++k)
      y += part_sums[c / per_warp * args.parts + k][n * per_warp + c % per_warp];
    if (args.bias) y += convert_to<float>(args.bias[column]);
    y = activate(DeviceMath<float>{}, args.activation, y);
    const std::int64_t place = std::int64_t{n} * args.columns + column;
    if (args.residual) y += convert_to<float>(args.residual[place]);
    args.y[place] = convert_to<X>(y);
  }
}

template <class X, class W, int most_rows, int per_warp>
void launch_variant(const Call& call, const Args<X, W>& args) {
  const auto function = kernel<X, W, most_rows, per_warp>;
  const std::int64_t bytes = std::int64_t{args.rows} * args.inner * static_cast<int>(sizeof(float));
  if (bytes > 40 << 10) allow_all_shared_memory(call, reinterpret_cast<const void*>(function));
  const std::int64_t blocks = divide_up(args.columns, warps / args.parts * per_warp);
  cuda::launch(call, function, grid_of(blocks), BlockSize{threads, bytes}, args, Start::early);
}

/// Few columns for each warp, and several warps for each column, until there are two blocks for each SM.
template <class X, class W, int most_rows>
void launch_rows(const Call& call, Args<X, W> args) {
  constexpr int few = most_rows <= 2 ? 1 : 2, many = 4;
  const std::int64_t enough = 2 * call.properties().multiProcessorCount;
  args.parts = 1;
  if (divide_up(args.columns, warps * many) >= enough)
    return launch_variant<X, W, most_rows, many>(call, args);
  const int packs = args.inner / pack_lanes<W>;
  while (args.parts < warps && packs >= 64 * args.parts &&
         divide_up(args.columns, warps / args.parts * few) < enough)
    args.parts *= 2;
  launch_variant<X, W, most_rows, few>(call, args);
}

template <class X, class W>
void launch(const Call& call, const Args<X, W>& args) {
  if (args.rows == 1 && args.inner <= most_inner_of_row(sizeof(W))) return launch_row(call, args);
  if (args.rows <= 2) return launch_rows<X, W, 2>(call, args);
  if (args.rows <= 4) return launch_rows<X, W, 4>(call, args);
  launch_rows<X, W, 8>(call, args);
}

}  // namespace ferrite::cuda::fused_linear
