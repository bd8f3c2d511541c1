// fused_linear of one row, which is limited by how often its threads wait: for memory, and for each other. A
// warp computes one column after the other, or its part of them. It asks for all that it needs at once, keeps
// the row in registers, normalised, and asks for the weights of the next column before it adds up the last.
#pragma once

#include "backend_cuda/kit/fused_linear.hpp"
#include "backend_cuda/kit/linear_parts.cuh"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda::fused_linear {

constexpr int warps = 8, threads = 32 * warps;
/// Blocks that an SM holds at once. Fewer leave more registers to each, which a row of 16 bits needs beside
/// weights of 8: a lane has 32 elements of it.
template <class X, class W>
inline constexpr int row_blocks_of_sm = sizeof(W) < sizeof(X) && sizeof(X) == 2 ? 2 : 3;

/// `count` elements as they lie in memory, in words of 16 bytes: an element of 16 bits by itself would take a
/// whole register.
template <class T, int count>
class Piece {
 public:
  __device__ __forceinline__ void load(const T* at) {
#pragma unroll
    for (int i = 0; i < words; ++i) words_[i] = reinterpret_cast<const uint4*>(at)[i];
  }
  __device__ __forceinline__ float operator[](int i) const {
    if constexpr (std::is_same_v<T, std::int8_t>)
      return weight_of(reinterpret_cast<const std::uint32_t*>(words_)[i / 4], static_cast<unsigned>(i % 4));
    T element;
    __builtin_memcpy(&element, reinterpret_cast<const T*>(words_) + i, sizeof(T));
    return convert_to<float>(element);
  }

 private:
  static constexpr int words = count / pack_lanes<T>;
  uint4 words_[words] = {};
};

/// args.parts warps that follow each other share their columns.
template <class X, class W>
__global__ void __launch_bounds__(threads, row_blocks_of_sm<X, W>)
    row_kernel(const __grid_constant__ Args<X, W> args) {
  constexpr int lanes = pack_lanes<W>, packs = packs_of_lane(sizeof(X), sizeof(W));
  __shared__ float part_sums[warps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int part = warp % args.parts, block_columns = warps / args.parts;
  // Calls with the number and the first element of each pack that this lane has; the others stay 0.
  const auto for_packs = [&](auto&& f) {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int at = ((i * args.parts + part) * 32 + lane) * lanes;
      if (at < args.inner) f(i, at);
    }
  };
  int first = static_cast<int>(blockIdx.x) * block_columns;  // of the block
  // What is beyond the last column is computed, and not stored.
  const auto column = [&] { return ::min(first + warp / args.parts, args.columns - 1); };
  const auto weights_at = [&](int at) { return args.weight + column() * args.weight_stride + at; };
  for_packs([&](int, int at) {
    prefetch(weights_at(at));
    if (args.norm_weight && warp == part) prefetch(args.norm_weight + at);
    if (args.norm_bias && warp == part) prefetch(args.norm_bias + at);
  });
  wait_for_earlier_kernels();

  Piece<W, lanes> weights[packs];
  float scale = 1, bias = 0, residual = 0;  // of the column
  const auto load_column = [&] {
    for_packs([&](int i, int at) { weights[i].load(weights_at(at)); });
    if (args.scale) scale = args.scale[column()];
    if (args.bias) bias = convert_to<float>(args.bias[column()]);
    if (args.residual) residual = convert_to<float>(args.residual[column()]);
  };
  Piece<X, lanes> given[packs], norm_weights[packs], norm_biases[packs];
  for_packs([&](int i, int at) {
    given[i].load(args.x + at);
    if (args.norm_weight) norm_weights[i].load(args.norm_weight + at);
    if (args.norm_bias) norm_biases[i].load(args.norm_bias + at);
  });
  load_column();

  // The sum over what args.parts warps have, for each of them.
  const auto row_sum = [&](float own) {
    own = warp_sum(own);
    if (args.parts == 1) return own;
    __syncthreads();  // all have read the last sums
    if (lane == 0) part_sums[warp] = own;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < args.parts; ++k) sum += part_sums[warp - part + k];
    return sum;
  };
  const auto mean_of = [&](auto&& f) {
    float own = 0;
    for_packs([&](int i, int) {
#pragma unroll
      for (int k = 0; k < lanes; ++k) own += f(given[i][k]);
    });
    return row_sum(own) / static_cast<float>(args.inner);
  };
  float mean = 0, factor = 1;
  if (args.norm == RowNorm::layer) mean = mean_of([](float x) { return x; });
  if (args.norm != RowNorm::none)
    factor = rsqrtf(mean_of([&](float x) { return (x - mean) * (x - mean); }) + args.eps);
  float x[packs][lanes];
#pragma unroll
  for (int i = 0; i < packs; ++i) {
#pragma unroll
    for (int k = 0; k < lanes; ++k)
      x[i][k] = args.norm == RowNorm::none
                    ? given[i][k]
                    : (given[i][k] - mean) * factor * norm_weights[i][k] + norm_biases[i][k];
  }

  while (first < args.columns) {
    float own = 0;
#pragma unroll
    for (int i = 0; i < packs; ++i) {
#pragma unroll
      for (int k = 0; k < lanes; ++k) own = fmaf(x[i][k], weights[i][k], own);
    }
    const int place = first + warp / args.parts;
    const float own_scale = scale, own_bias = bias, own_residual = residual;
    first += static_cast<int>(gridDim.x) * block_columns;
    if (first < args.columns) load_column();
    const float sum = row_sum(own) * own_scale + own_bias;
    if (lane == 0 && part == 0 && place < args.columns)
      args.y[place] = convert_to<X>(activate(DeviceMath<float>{}, args.activation, sum) + own_residual);
  }
}

template <class X, class W>
void launch_row(const Call& call, Args<X, W> args) {
  constexpr int of_warp = 32 * pack_lanes<W> * packs_of_lane(sizeof(X), sizeof(W));
  static_assert(of_warp * warps == most_inner_of_row(sizeof(X), sizeof(W)));
  args.parts = 1;
  while (args.inner > of_warp * args.parts) args.parts *= 2;
  // Two rounds at most: from there on warps take several columns, and keep the row.
  const std::int64_t most = 2 * row_blocks_of_sm<X, W> * call.properties().multiProcessorCount;
  const std::int64_t needed = divide_up(args.columns, warps / args.parts);
  cuda::launch(call, row_kernel<X, W>, grid_of(needed < most ? needed : most), BlockSize{threads, 0}, args,
               Start::early);
}

}  // namespace ferrite::cuda::fused_linear
