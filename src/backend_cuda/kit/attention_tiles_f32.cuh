// Products of tiles of f32 on tensor cores. Each element is split into two of tf32, which together hold 22 of
// its 24 bits; three of their four products count. So a product has the precision of f32, nearly, at a third
// of the rate of tf32, which is still several times what the other units reach.
#pragma once

#include "backend_cuda/kit/attention_tiles.cuh"

namespace ferrite::cuda::attention {

/// high + low is the element, within 2^-22 of it.
template <int count>
struct Split {
  std::uint32_t high[count], low[count];

  __device__ __forceinline__ explicit Split(const float (&x)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      high[i] = ptx::round_to_tf32(__float_as_uint(x[i]));
      low[i] = ptx::round_to_tf32(__float_as_uint(x[i] - __uint_as_float(high[i])));
    }
  }
};

__device__ __forceinline__ void multiply_add(float (&sum)[4], const Split<4>& a, const Split<2>& b) {
  ptx::multiply_add<float>(sum, a.low, b.high[0], b.high[1]);  // small ones first
  ptx::multiply_add<float>(sum, a.high, b.low[0], b.low[1]);
  ptx::multiply_add<float>(sum, a.high, b.high[0], b.high[1]);
}

template <int columns, bool kept>
struct LeftRows<float, columns, kept> {
  const float* rows;
  int lane;
  float fragments[kept ? columns / 8 : 1][4];

  __device__ __forceinline__ LeftRows(const float* tile, int l) : rows(tile), lane(l) {}
  __device__ __forceinline__ void keep() {
    if constexpr (kept) {
#pragma unroll
      for (int k = 0; k < columns / 8; ++k) load(fragments[k], k);
    }
  }
  __device__ __forceinline__ Split<4> get(int k) const {
    if constexpr (kept) return Split<4>(fragments[k]);
    float fragment[4];
    load(fragment, k);
    return Split<4>(fragment);
  }

 private:
  __device__ __forceinline__ void load(float (&to)[4], int k) const {
    constexpr int stride = row_stride<float, columns>;
    const float* const at = rows + lane / 4 * stride + k * 8 + lane % 4;
    to[0] = at[0], to[1] = at[8 * stride], to[2] = at[4], to[3] = at[8 * stride + 4];
  }
};

template <class T, int columns, int n_tiles, bool kept>
requires std::same_as<T, float> __device__ __forceinline__ void multiply_rows(
    Sums<n_tiles>& sum, const LeftRows<T, columns, kept>& left, const T* right) {
  constexpr int stride = row_stride<T, columns>;
  sum = {};
  const T* const row = right + left.lane / 4 * stride + left.lane % 4;
#pragma unroll
  for (int k = 0; k < columns / 8; ++k) {
    const Split<4> a = left.get(k);
#pragma unroll
    for (int n = 0; n < n_tiles; ++n) {
      const T* const at = row + n * 8 * stride + k * 8;
      multiply_add(sum[n], a, Split<2>({at[0], at[4]}));
    }
  }
}

/// The places of results are not those of a left operand. Here element t of a step is its row 2 t of `right`,
/// and element t + 4 the row 2 t + 1: the order of a sum is free.
template <class T, int columns, int n_tiles>
requires std::same_as<T, float> __device__ __forceinline__ void multiply_through(Sums<columns / 8>& sum,
                                                                                 const Sums<n_tiles>& left,
                                                                                 const T* right, int lane) {
  constexpr int stride = row_stride<T, columns>;
  const T* const row = right + lane % 4 * 2 * stride + lane / 4;
#pragma unroll
  for (int k = 0; k < n_tiles; ++k) {
    const Split<4> a({left[k][0], left[k][2], left[k][1], left[k][3]});
#pragma unroll
    for (int n = 0; n < columns / 8; ++n) {
      const T* const at = row + k * 8 * stride + n * 8;
      multiply_add(sum[n], a, Split<2>({at[0], at[stride]}));
    }
  }
}

}  // namespace ferrite::cuda::attention
