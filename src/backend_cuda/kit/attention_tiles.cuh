// Tiles of attention on tensor cores: rows in shared memory, and products of tiles whose results stay in
// registers. A warp owns 16 rows of results. Where a lane's elements of a 16 x 8 result lie is told in
// ptx.cuh; the same places, packed in pairs, are those of a left operand of 16 bits. attention_tiles_f32.cuh
// has the products of f32.
#pragma once

#include "backend_cuda/kit/attention_problem.cuh"
#include "backend_cuda/kit/ptx.cuh"

namespace ferrite::cuda::attention {

/// Rows start 16 bytes apart in the banks, so that the 8 rows of a matrix do not collide.
template <class T, int columns>
constexpr int row_stride = columns + pack_lanes<T>;
template <class T, int columns>
constexpr int tile_bytes(int rows) {
  return rows * row_stride<T, columns> * static_cast<int>(sizeof(T));
}

/// 16 rows of results, in tiles of 8 columns. Not a name for an array: nvcc 12.4 cannot compile that.
template <int n_tiles>
struct Sums {
  float tiles[n_tiles][4];

  __device__ __forceinline__ float (&operator[](int tile))[4] { return tiles[tile]; }
  __device__ __forceinline__ const float (&operator[](int tile) const)[4] { return tiles[tile]; }
};

/// Begins to load rows [first, first + rows) of one head, with zeros beyond the last row and the last column.
/// `in_packs`: rows start at multiples of 16 bytes and are dense, so that the copies are asynchronous.
template <int rows, int columns, int threads, class T>
__device__ __forceinline__ void load_rows(T* to, const Heads<const T>& x, const T* head, std::int64_t first,
                                          std::int64_t end, int width, bool in_packs, int thread) {
  constexpr int pack = pack_lanes<T>, packs = columns / pack;
#pragma unroll 4
  for (int i = thread; i < rows * packs; i += threads) {
    const int r = i / packs, c = i % packs * pack;
    const bool exists = first + r < end;
    const T* const from = head + (exists ? (first + r) * x.row : 0);
    T* const place = to + r * row_stride<T, columns> + c;
    const int count = exists ? ::min(::max(width - c, 0), pack) : 0;
    if (in_packs) {
      ptx::copy_async(place, count > 0 ? from + c : head, count * static_cast<int>(sizeof(T)));
    } else {
#pragma unroll
      for (int e = 0; e < pack; ++e) place[e] = e < count ? from[(c + e) * x.column] : convert_to<T>(0.0f);
    }
  }
}

/// The left operands of one warp: fragments of its 16 rows, in registers if they are `kept` there.
template <class T, int columns, bool kept>
struct LeftRows {
  const T* rows;
  int lane;
  std::uint32_t fragments[kept ? columns / 16 : 1][4];

  __device__ __forceinline__ LeftRows(const T* tile, int l) : rows(tile), lane(l) {}
  /// After the tile has arrived.
  __device__ __forceinline__ void keep() {
    if constexpr (kept) {
#pragma unroll
      for (int k = 0; k < columns / 16; ++k) load(fragments[k], k);
    }
  }
  __device__ __forceinline__ void get(std::uint32_t (&to)[4], int k) const {
    if constexpr (kept) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = fragments[k][i];
    } else {
      load(to, k);
    }
  }

 private:
  __device__ __forceinline__ void load(std::uint32_t (&to)[4], int k) const {
    ptx::load_matrices(to, rows + lane % 16 * row_stride<T, columns> + k * 16 + lane / 16 * 8);
  }
};

/// sum = left right^T, where `right` is a tile of 8 n_tiles rows.
template <class T, int columns, int n_tiles, bool kept>
__device__ __forceinline__ void multiply_rows(Sums<n_tiles>& sum, const LeftRows<T, columns, kept>& left,
                                              const T* right) {
#pragma unroll
  for (int n = 0; n < n_tiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[n][i] = 0;
  const int lane = left.lane;
  const T* const row = right + (lane % 8 + lane / 16 * 8) * row_stride<T, columns> + lane / 8 % 2 * 8;
#pragma unroll
  for (int k = 0; k < columns / 16; ++k) {
    std::uint32_t a[4];
    left.get(a, k);
#pragma unroll
    for (int n = 0; n < n_tiles; n += 2) {
      std::uint32_t b[4];
      ptx::load_matrices(b, row + n * 8 * row_stride<T, columns> + k * 16);
      ptx::multiply_add<T>(sum[n], a, b[0], b[1]);
      ptx::multiply_add<T>(sum[n + 1], a, b[2], b[3]);
    }
  }
}

template <class T>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&both);
  } else {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&both);
  }
}

template <class T>
__device__ __forceinline__ void store_pair(T* to, float low, float high) {
  if constexpr (std::is_same_v<T, float>)
    *reinterpret_cast<float2*>(to) = {low, high};
  else
    *reinterpret_cast<std::uint32_t*>(to) = pack<T>(low, high);
}

/// sum += left right, where `left` are results of an earlier product, rounded to T, and `right` is a tile of
/// 8 n_tiles rows.
template <class T, int columns, int n_tiles>
__device__ __forceinline__ void multiply_through(Sums<columns / 8>& sum, const Sums<n_tiles>& left,
                                                 const T* right, int lane) {
  const T* const row = right + lane % 16 * row_stride<T, columns> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < n_tiles / 2; ++k) {
    const float(&low)[4] = left[2 * k], (&high)[4] = left[2 * k + 1];
    const std::uint32_t a[4] = {pack<T>(low[0], low[1]), pack<T>(low[2], low[3]), pack<T>(high[0], high[1]),
                                pack<T>(high[2], high[3])};
#pragma unroll
    for (int n = 0; n < columns / 8; n += 2) {
      std::uint32_t b[4];
      ptx::load_matrices_transposed(b, row + k * 16 * row_stride<T, columns> + n * 8);
      ptx::multiply_add<T>(sum[n], a, b[0], b[1]);
      ptx::multiply_add<T>(sum[n + 1], a, b[2], b[3]);
    }
  }
}

/// Writes (or adds) a lane's elements of 16 rows of one head, times factor[0] (its upper row) and factor[1].
template <int columns, class T>
__device__ __forceinline__ void store_rows(const Sums<columns / 8>& sum, const float (&factor)[2],
                                           const Heads<T>& to, T* head, std::int64_t first, std::int64_t end,
                                           int width, bool in_packs, bool add, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first + lane / 4 + half * 8;
    if (row >= end) continue;
    T* const from = head + row * to.row;
#pragma unroll
    for (int n = 0; n < columns / 8; ++n) {
      const int c = n * 8 + lane % 4 * 2;
      const float low = sum[n][2 * half] * factor[half], high = sum[n][2 * half + 1] * factor[half];
      if (in_packs && !add && c + 1 < width) {
        store_pair(from + c, low, high);
        continue;
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (c + e >= width) continue;
        T* const place = from + (c + e) * to.column;
        const float value = e == 0 ? low : high;
        *place = convert_to<T>(add ? convert_to<float>(*place) + value : value);
      }
    }
  }
}

/// Over the 4 lanes that share a row.
__device__ __forceinline__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ __forceinline__ float row_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

constexpr float log2_of_e = 1.44269504088896340736f;
/// 2^x within 2^-22.
__device__ __forceinline__ float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ferrite::cuda::attention
