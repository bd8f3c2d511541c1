// fused_linear of one row, which is limited by how often its threads wait: for memory, and for each other. A
// warp computes one column after the other, or its part of them. It asks for all that it needs at once, and
// has two columns under way. The row is normalised once for the block, in shared memory, which leaves the
// registers to the weights.
#pragma once

#include "backend_cuda/kit/fused_linear_rows.cuh"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda::fused_linear {

/// Blocks for which an SM has registers, at least. With more, kernels that start early ask for their weights
/// while this one still waits for its own: with four a token of GPT-2 took 13 % longer on an H200.
inline constexpr int row_blocks_of_sm = 3;

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

/// The sum over the threads of a block, for each of them. `of_warps` must not be in use by an earlier sum.
__device__ __forceinline__ float block_sum(float own, float (&of_warps)[warps]) {
  own = warp_sum(own);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += of_warps[w];
  return sum;
}

/// args.parts warps that follow each other share their columns. Dynamic shared memory: the row as floats.
template <class X, class W>
__global__ void __launch_bounds__(threads, row_blocks_of_sm)
    row_kernel(const __grid_constant__ Args<X, W> args) {
  constexpr int lanes = pack_lanes<W>, packs = packs_of_lane(sizeof(W));
  __shared__ float part_sums[warps], norm_sums[2][warps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int part = warp % args.parts, block_columns = warps / args.parts, own_column = warp / args.parts;
  // Calls with the number and the place of each pack that this lane has.
  const auto for_packs = [&](auto&& f) {
#pragma unroll
    for (int i = 0; i < packs; ++i) {
      const int pack = (i * args.parts + part) * 32 + lane;
      if (pack * lanes < args.inner) f(i, pack);
    }
  };
  int first = static_cast<int>(blockIdx.x) * block_columns;  // of the block
  const int step = static_cast<int>(gridDim.x) * block_columns;
  // What is beyond the last column is computed, and not stored.
  const auto column = [&](int from) { return ::min(from + own_column, args.columns - 1); };
  const auto weights_at = [&](int from, int pack) {
    return args.weight + column(from) * args.weight_stride + pack * lanes;
  };
  for_packs([&](int, int pack) {
    prefetch(weights_at(first, pack));
    if (args.norm_weight && warp == part) prefetch(args.norm_weight + pack * lanes);
    if (args.norm_bias && warp == part) prefetch(args.norm_bias + pack * lanes);
  });
  wait_for_earlier_kernels();

  struct Column {
    Piece<W, lanes> weights[packs];
    float scale = 1, bias = 0, residual = 0;
  };
  const auto load = [&](Column& to, int from) {
    if (from >= args.columns) return;
    for_packs([&](int i, int pack) { to.weights[i].load(weights_at(from, pack)); });
    if (args.scale) to.scale = args.scale[column(from)];
    if (args.bias) to.bias = convert_to<float>(args.bias[column(from)]);
    if (args.residual) to.residual = convert_to<float>(args.residual[column(from)]);
  };
  Column even, odd;
  load(even, first);
  load(odd, first + step);
  const Rows<X, W> rows(ptx::shared_memory(), args);
  int sums = 0;  // so far: each has memory of its own
  if (args.norm == RowNorm::none)
    rows.copy(static_cast<int>(threadIdx.x), threads);
  else
    rows.normalise(0, static_cast<int>(threadIdx.x), threads,
                   [&](float own) { return block_sum(own, norm_sums[sums++]); });
  __syncthreads();

  // The column of this warp, in whose place the one after the next is loaded.
  const auto finish = [&](Column& own) {
    float4 four{0, 0, 0, 0};  // sums side by side: one would wait for itself
    for_packs([&](int i, int pack) {
#pragma unroll
      for (int k = 0; k < lanes; k += 4) {
        const float4 x = rows.at(0, pack, k / 4);
        four.x = fmaf(x.x, own.weights[i][k], four.x);
        four.y = fmaf(x.y, own.weights[i][k + 1], four.y);
        four.z = fmaf(x.z, own.weights[i][k + 2], four.z);
        four.w = fmaf(x.w, own.weights[i][k + 3], four.w);
      }
    });
    const int place = first + own_column;
    const float scale = own.scale, bias = own.bias, residual = own.residual;
    load(own, first + 2 * step);
    float sum = warp_sum((four.x + four.y) + (four.z + four.w));
    if (args.parts > 1) {
      __syncthreads();  // all have read the last sums
      if (lane == 0) part_sums[warp] = sum;
      __syncthreads();
      sum = 0;
      for (int k = 0; k < args.parts; ++k) sum += part_sums[warp - part + k];
    }
    sum = sum * scale + bias;
    if (lane == 0 && part == 0 && place < args.columns)
      args.y[place] = convert_to<X>(activate(DeviceMath<float>{}, args.activation, sum) + residual);
    first += step;
  };
  while (first < args.columns) {
    finish(even);
    if (first < args.columns) finish(odd);
  }
}

template <class X, class W>
void launch_row(const Call& call, Args<X, W> args) {
  constexpr int of_warp = 32 * pack_lanes<W> * packs_of_lane(sizeof(W));
  static_assert(of_warp * warps == most_inner_of_row(sizeof(W)));
  static_assert(most_inner_of_row(sizeof(W)) * sizeof(float) <=
                40 << 10);  // of shared memory, without asking
  args.parts = 1;
  while (args.inner > of_warp * args.parts) args.parts *= 2;
  // As many as run at once: from there on warps take several columns, and the block keeps the row.
  const std::int64_t most = row_blocks_of_sm * call.properties().multiProcessorCount;
  const std::int64_t needed = divide_up(args.columns, warps / args.parts);
  const std::int64_t bytes = args.inner * static_cast<std::int64_t>(sizeof(float));
  cuda::launch(call, row_kernel<X, W>, grid_of(needed < most ? needed : most), BlockSize{threads, bytes},
               args, Start::early);
}

}  // namespace ferrite::cuda::fused_linear
