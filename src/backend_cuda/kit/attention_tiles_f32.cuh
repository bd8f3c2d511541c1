// Products of tiles of f32 on tensor cores. Each element is split into two of tf32, which together hold 22 of
// its 24 bits; three of their four products count. Tensor cores cut off what does not fit into a sum instead
// of rounding it, so sums stay short, and small products have sums of their own.
#pragma once

#include "backend_cuda/kit/attention_tiles.cuh"

namespace ferrite::cuda::attention {

/// high + low is the element. Tensor cores ignore the last 13 bits of both, at most 2^-22 of it.
template <int count>
struct Split {
  std::uint32_t high[count], low[count];

  __device__ __forceinline__ explicit Split(const float (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      high[i] = (__float_as_uint(x[i]) + 0x1000) & 0xffffe000;  // quicker than the instruction that rounds
      low[i] = __float_as_uint(x[i] - __uint_as_float(high[i]));
    }
  }
};

/// 16 rows of sums that are being made.
template <int n_tiles>
struct SplitSums {
  Sums<n_tiles> large, small;

  __device__ __forceinline__ void add(int n, const Split<4>& a, const Split<2>& b) {
    ptx::multiply_add<float>(small[n], a.low, b.high[0], b.high[1]);
    ptx::multiply_add<float>(small[n], a.high, b.low[0], b.low[1]);
    ptx::multiply_add<float>(large[n], a.high, b.high[0], b.high[1]);
  }
};

/// Left operands of f32 do not stay in registers: the sums need them.
template <int columns, bool kept, int parts>
struct LeftRows<float, columns, kept, parts> {
  const float* rows;
  int lane;

  __device__ __forceinline__ LeftRows(const float* tile, int l) : rows(tile), lane(l) {}
  __device__ __forceinline__ void keep() {}
  __device__ __forceinline__ Split<4> get(int part, int k) const {
    constexpr int stride = row_stride<float, columns>;
    const float* const at = rows + (part * 16 + lane / 4) * stride + k * 8 + lane % 4;
    return Split<4>({at[0], at[8 * stride], at[4], at[8 * stride + 4]});
  }
};

template <class T, int columns, int parts, int n_tiles, bool kept>
requires std::same_as<T, float> __device__ __forceinline__ void multiply_rows(
    Sums<n_tiles> (&sum)[parts], const LeftRows<T, columns, kept, parts>& left, const T* right) {
  constexpr int stride = row_stride<T, columns>;
  const T* const row = right + left.lane / 4 * stride + left.lane % 4;
#pragma unroll
  for (int part = 0; part < parts; ++part) {
    SplitSums<n_tiles> made = {};
#pragma unroll 8
    for (int k = 0; k < columns / 8; ++k) {
      const Split<4> a = left.get(part, k);
#pragma unroll
      for (int n = 0; n < n_tiles; ++n) {
        const T* const at = row + n * 8 * stride + k * 8;
        made.add(n, a, Split<2>({at[0], at[4]}));
      }
    }
#pragma unroll
    for (int n = 0; n < n_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[part][n][i] = made.large[n][i] + made.small[n][i];
  }
}

/// The places of results are not those of a left operand. Here element t of a step is its row 2 t of `right`,
/// and element t + 4 the row 2 t + 1: the order of a sum is free.
template <class T, int columns, int parts, int n_tiles>
requires std::same_as<T, float> __device__ __forceinline__ void multiply_through(
    Sums<columns / 8> (&sum)[parts], const Sums<n_tiles> (&left)[parts], const T* right, int lane) {
  constexpr int stride = row_stride<T, columns>, at_once = 4;
  const T* const row = right + lane % 4 * 2 * stride + lane / 4;
#pragma unroll
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int first = 0; first < columns / 8; first += at_once) {
      SplitSums<at_once> made = {};
#pragma unroll
      for (int k = 0; k < n_tiles; ++k) {
        const float(&tile)[4] = left[part][k];
        const Split<4> a({tile[0], tile[2], tile[1], tile[3]});
#pragma unroll
        for (int n = 0; n < at_once; ++n) {
          const T* const at = row + k * 8 * stride + (first + n) * 8;
          made.add(n, a, Split<2>({at[0], at[stride]}));
        }
      }
#pragma unroll
      for (int n = 0; n < at_once; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[part][first + n][i] += made.large[n][i] + made.small[n][i];
    }
}

}  // namespace ferrite::cuda::attention
