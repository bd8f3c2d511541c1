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

/// What a thread loads of tiles of one head. `in_packs`: rows start at multiples of 16 bytes and are dense,
/// so that the copies are asynchronous.
template <int rows, int columns, int threads, class T>
class RowLoader {
 public:
  /// `end`: of the rows; `width`: of the columns.
  __device__ __forceinline__ RowLoader(const Heads<const T>& x, const T* head, std::int64_t end, int width,
                                       bool in_packs, int thread)
      : head_(head),
        end_(end),
        row_(x.row),
        column_(x.column),
        own_(thread / packs),
        first_column_(thread % packs * pack),
        count_(::min(::max(width - first_column_, 0), pack)),
        in_packs_(in_packs) {}
  /// Begins to load rows [first, first + rows), with zeros beyond the last row and the last column.
  __device__ __forceinline__ void load(T* tile, std::int64_t first) const {
    const int exist = static_cast<int>(::min(end_ - first, std::int64_t{rows}));
    T* const to = tile + own_ * stride + first_column_;
    const T* from = head_ + (first + own_) * row_;
    if (in_packs_) {
      from += first_column_;
#pragma unroll
      for (int r = 0; r < rows; r += step, from += step * row_) {
        if (rows % step != 0 && own_ + r >= rows) break;
        const bool exists = own_ + r < exist && count_ > 0;
        ptx::copy_async(to + r * stride, exists ? from : head_,
                        exists ? count_ * static_cast<int>(sizeof(T)) : 0);
      }
      return;
    }
#pragma unroll 1
    for (int r = 0; own_ + r < rows; r += step, from += step * row_)
#pragma unroll 1
      for (int e = 0; e < pack; ++e)
        to[r * stride + e] =
            own_ + r < exist && e < count_ ? from[(first_column_ + e) * column_] : convert_to<T>(0.0f);
  }

 private:
  static constexpr int pack = pack_lanes<T>, packs = columns / pack, step = threads / packs,
                       stride = row_stride<T, columns>;
  static_assert(threads % packs == 0);

  const T* head_;
  std::int64_t end_, row_, column_;
  int own_, first_column_, count_;
  bool in_packs_;
};

/// A tile that is loaded once.
template <int rows, int columns, int threads, class T>
__device__ __forceinline__ void load_rows(T* to, const Heads<const T>& x, const T* head, std::int64_t first,
                                          std::int64_t end, int width, bool in_packs, int thread) {
  RowLoader<rows, columns, threads, T>(x, head, end, width, in_packs, thread).load(to, first);
}

/// The left operands of one warp: fragments of its rows, 16 of each part, in registers if they are `kept`
/// there.
template <class T, int columns, bool kept, int parts = 1>
struct LeftRows {
  const T* rows;
  int lane;
  std::uint32_t fragments[kept ? parts : 1][kept ? columns / 16 : 1][4];

  __device__ __forceinline__ LeftRows(const T* tile, int l) : rows(tile), lane(l) {}
  /// After the tile has arrived.
  __device__ __forceinline__ void keep() {
    if constexpr (kept) {
#pragma unroll
      for (int part = 0; part < parts; ++part)
#pragma unroll
        for (int k = 0; k < columns / 16; ++k) load(fragments[part][k], part, k);
    }
  }
  __device__ __forceinline__ void get(std::uint32_t (&to)[4], int part, int k) const {
    if constexpr (kept) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i] = fragments[part][k][i];
    } else {
      load(to, part, k);
    }
  }

 private:
  __device__ __forceinline__ void load(std::uint32_t (&to)[4], int part, int k) const {
    ptx::load_matrices(to, rows + (part * 16 + lane % 16) * row_stride<T, columns> + k * 16 + lane / 16 * 8);
  }
};

/// sum = left right^T, where `right` is a tile of 8 n_tiles rows.
template <class T, int columns, int parts, int n_tiles, bool kept>
__device__ __forceinline__ void multiply_rows(Sums<n_tiles> (&sum)[parts],
                                              const LeftRows<T, columns, kept, parts>& left, const T* right) {
#pragma unroll
  for (int part = 0; part < parts; ++part)
#pragma unroll
    for (int n = 0; n < n_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[part][n][i] = 0;
  const int lane = left.lane;
  const T* const row = right + (lane % 8 + lane / 16 * 8) * row_stride<T, columns> + lane / 8 % 2 * 8;
#pragma unroll
  for (int k = 0; k < columns / 16; ++k) {
    std::uint32_t a[parts][4];
#pragma unroll
    for (int part = 0; part < parts; ++part) left.get(a[part], part, k);
#pragma unroll
    for (int n = 0; n < n_tiles; n += 2) {
      std::uint32_t b[4];
      ptx::load_matrices(b, row + n * 8 * row_stride<T, columns> + k * 16);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        ptx::multiply_add<T>(sum[part][n], a[part], b[0], b[1]);
        ptx::multiply_add<T>(sum[part][n + 1], a[part], b[2], b[3]);
      }
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

__device__ __forceinline__ void load_pair(float (&to)[2], const float* from) {
  const float2 pair = *reinterpret_cast<const float2*>(from);
  to[0] = pair.x, to[1] = pair.y;
}

template <class T>
__device__ __forceinline__ void store_pair(T* to, float low, float high) {
  if constexpr (std::is_same_v<T, float>)
    *reinterpret_cast<float2*>(to) = {low, high};
  else
    *reinterpret_cast<std::uint32_t*>(to) = pack<T>(low, high);
}

/// sum += left right, where `left` are results of earlier products, rounded to T, and `right` is a tile of 8
/// n_tiles rows.
template <class T, int columns, int parts, int n_tiles>
__device__ __forceinline__ void multiply_through(Sums<columns / 8> (&sum)[parts],
                                                 const Sums<n_tiles> (&left)[parts], const T* right,
                                                 int lane) {
  const T* const row = right + lane % 16 * row_stride<T, columns> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < n_tiles / 2; ++k) {
    std::uint32_t a[parts][4];
#pragma unroll
    for (int part = 0; part < parts; ++part)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&tile)[4] = left[part][2 * k + i / 2];
        a[part][i] = pack<T>(tile[i % 2 * 2], tile[i % 2 * 2 + 1]);
      }
#pragma unroll
    for (int n = 0; n < columns / 8; n += 2) {
      std::uint32_t b[4];
      ptx::load_matrices_transposed(b, row + k * 16 * row_stride<T, columns> + n * 8);
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        ptx::multiply_add<T>(sum[part][n], a[part], b[0], b[1]);
        ptx::multiply_add<T>(sum[part][n + 1], a[part], b[2], b[3]);
      }
    }
  }
}

/// sum += left^T right, where `left` are 16 x 16 results of an earlier product, rounded to T.
template <class T, int columns>
__device__ __forceinline__ void multiply_transposed(Sums<columns / 8>& sum, const Sums<2>& left,
                                                    const T* right, int lane) {
  const T* const row = right + lane % 16 * row_stride<T, columns> + lane / 16 * 8;
  std::uint32_t a[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float(&tile)[4] = left[i % 2];
    a[i] = ptx::transposed(pack<T>(tile[i / 2 * 2], tile[i / 2 * 2 + 1]));
  }
#pragma unroll
  for (int n = 0; n < columns / 8; n += 2) {
    std::uint32_t b[4];
    ptx::load_matrices_transposed(b, row + n * 8);
    ptx::multiply_add<T>(sum[n], a, b[0], b[1]);
    ptx::multiply_add<T>(sum[n + 1], a, b[2], b[3]);
  }
}

/// Writes (or adds) a lane's elements of 16 rows of one head, times factor[0] (its upper row) and factor[1].
template <int columns, class T>
__device__ __forceinline__ void store_rows(const Sums<columns / 8>& sum, const float (&factor)[2],
                                           const Heads<T>& to, T* head, std::int64_t first, std::int64_t end,
                                           int width, bool in_packs, bool add, int lane) {
  const bool in_pairs = in_packs && !add, whole = width == columns;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first + lane / 4 + half * 8;
    if (row >= end) continue;
    T* const from = head + row * to.row;
    if (in_pairs) {
      T* const place = from + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < columns / 8; ++n) {
        const int left = width - (n * 8 + lane % 4 * 2);
        const float low = sum[n][2 * half] * factor[half], high = sum[n][2 * half + 1] * factor[half];
        if (whole || left > 1)
          store_pair(place + n * 8, low, high);
        else if (left == 1)
          place[n * 8] = convert_to<T>(low);
      }
      continue;
    }
#pragma unroll
    for (int n = 0; n < columns / 8; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int c = n * 8 + lane % 4 * 2 + e;
        if (c >= width) continue;
        T* const place = from + c * to.column;
        const float value = sum[n][2 * half + e] * factor[half];
        *place = convert_to<T>(add ? convert_to<float>(*place) + value : value);
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
