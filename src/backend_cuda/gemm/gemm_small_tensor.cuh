// The Engine of small products on tensor cores, for f16, bf16 and f32 rounded to tf32.
#pragma once

#include "backend_cuda/gemm/gemm_small.cuh"

namespace ferrite::cuda::small_gemm {

/// Each warp computes warp_rows x warp_columns of the tile.
template <class T, int rows_, int columns_, int depth_, int stages_, int warp_rows, int warp_columns>
struct TensorCores {
  using Element = T;
  static constexpr int rows = rows_, columns = columns_, depth = depth_, stages = stages_;
  static constexpr int threads = 32 * (rows / warp_rows) * (columns / warp_columns);
  static constexpr int step = 32 / static_cast<int>(sizeof(T));  // of one instruction along k

  template <class A, class B>
  class Sums {
   public:
    __device__ Sums() {
      const int warp = static_cast<int>(threadIdx.x) / 32;
      row_ = warp % (rows / warp_rows) * warp_rows;
      column_ = warp / (rows / warp_rows) * warp_columns;
    }

    /// The registers of the next step are loaded ahead of the products of this one.
    __device__ __forceinline__ void add(const T* a, const T* b) {
      Fragments fragments[2];
      load(fragments[0], a, b, 0);
#pragma unroll
      for (int k = 0; k < depth; k += step) {
        const Fragments& now = fragments[k / step % 2];
        if (k + step < depth) load(fragments[(k / step + 1) % 2], a, b, k + step);
#pragma unroll
        for (int i = 0; i < warp_rows / 16; ++i) {
#pragma unroll
          for (int j = 0; j < warp_columns / 8; ++j)
            ptx::multiply_add<T>(sum_[i][j], now.a[i], now.b[j / 2][j % 2 * 2], now.b[j / 2][j % 2 * 2 + 1]);
        }
      }
    }

    __device__ __forceinline__ void write(float* to) const {
      const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
      for (int i = 0; i < warp_rows / 16; ++i) {
#pragma unroll
        for (int j = 0; j < warp_columns / 8; ++j) {
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const int row = row_ + 16 * i + lane / 4 + r / 2 * 8;
            const int column = column_ + 8 * j + lane % 4 * 2 + r % 2;
            to[column * sums_stride<TensorCores> + row] = sum_[i][j][r];
          }
        }
      }
    }

   private:
    struct Fragments {
      std::uint32_t a[warp_rows / 16][4], b[warp_columns / 16][4];
    };
    __device__ __forceinline__ void load(Fragments& to, const T* a, const T* b, int k) const {
#pragma unroll
      for (int i = 0; i < warp_rows / 16; ++i) load<A, true>(to.a[i], a, row_ + 16 * i, k);
#pragma unroll
      for (int j = 0; j < warp_columns / 16; ++j) load<B, false>(to.b[j], b, column_ + 16 * j, k);
    }
    /// 16 rows or columns by 32 bytes of k, as four registers of 8 by 16 bytes each. For A the second
    /// register holds the next rows, for B the next 16 bytes of k: B's pairs of registers are two operands of
    /// 8 columns.
    template <class Tile, bool next_is_across>
    __device__ __forceinline__ static void load(std::uint32_t (&to)[4], const T* tile, int across, int k) {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const auto across_of = [&](int i) { return across + (next_is_across ? i % 2 : i / 2) * 8; };
      const auto k_of = [&](int i) { return k + (next_is_across ? i / 2 : i % 2) * Tile::lanes; };
      if constexpr (Tile::by_k) {
        const int i = lane / 8;
        ptx::load_matrices(to, Tile::element(tile, across_of(i) + lane % 8, k_of(i)));
      } else if constexpr (sizeof(T) == 2) {
        const int i = lane / 8;
        ptx::load_matrices_transposed(to, Tile::element(tile, across_of(i), k_of(i) + lane % 8));
      } else {  // there is no transposing load of 32-bit elements
#pragma unroll
        for (int i = 0; i < 4; ++i)
          to[i] = __float_as_uint(*Tile::element(tile, across_of(i) + lane / 4, k_of(i) + lane % 4));
      }
      if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (std::uint32_t& bits : to) bits = ptx::round_to_tf32(bits);
      }
    }

    int row_, column_;  // of the warp in the tile
    float sum_[warp_rows / 16][warp_columns / 8][4] = {};
  };
};

/// The tiles of f16 and bf16.
template <class T>
std::span<const SmallGemmKernels, small_gemm_tiles> kernels_16_bit() {
  static const SmallGemmKernels tiles[] = {
      kernels<TensorCores<T, 32, 32, 64, 4, 16, 16>>(), kernels<TensorCores<T, 64, 64, 64, 4, 32, 32>>(),
      kernels<TensorCores<T, 128, 64, 64, 4, 64, 32>>(), kernels<TensorCores<T, 128, 128, 64, 4, 64, 32>>()};
  return tiles;
}

}  // namespace ferrite::cuda::small_gemm
