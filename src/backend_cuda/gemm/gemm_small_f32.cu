// Small products of exact f32: fused multiply-adds of register tiles.
#include "backend_cuda/gemm/gemm_small.cuh"

namespace ferrite::cuda {
namespace small_gemm {
namespace {

/// Each thread computes thread_rows x thread_columns of the tile, all parts of four.
template <int rows_, int columns_, int depth_, int stages_, int thread_rows, int thread_columns>
struct Simt {
  using Element = float;
  static constexpr int rows = rows_, columns = columns_, depth = depth_, stages = stages_;
  static constexpr int threads_down = rows / thread_rows, threads_across = columns / thread_columns;
  static constexpr int threads = threads_down * threads_across;
  static_assert(threads_down % 8 == 0 && threads_across % 4 == 0);

  template <class A, class B>
  class Sums {
   public:
    /// A warp is 8 threads down and 4 across. Lanes that differ in bit 0 read the same of A, in bit 1 the
    /// same of B: that halves the wavefronts of 16-byte reads.
    __device__ Sums() {
      const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
      down_ = warp % (threads_down / 8) * 8 + lane / 2 % 8;
      across_ = warp / (threads_down / 8) * 4 + lane / 16 * 2 + lane % 2;
    }

    __device__ __forceinline__ void add(const float* a, const float* b) {
#pragma unroll
      for (int k = 0; k < depth; k += 4) {
        float left[4][thread_rows], right[4][thread_columns];
        load<A, threads_down>(left, a, down_, k);
        load<B, threads_across>(right, b, across_, k);
#pragma unroll
        for (int kk = 0; kk < 4; ++kk) {
#pragma unroll
          for (int i = 0; i < thread_rows; ++i) {
#pragma unroll
            for (int j = 0; j < thread_columns; ++j) sum_[i][j] = fmaf(left[kk][i], right[kk][j], sum_[i][j]);
          }
        }
      }
    }

    __device__ __forceinline__ void write(float* to) const {
#pragma unroll
      for (int j = 0; j < thread_columns; ++j) {
        float* const column = to + place<B, threads_across>(across_, j) * sums_stride<Simt>;
#pragma unroll
        for (int i = 0; i < thread_rows; i += 4) {
          if constexpr (A::by_k) {
#pragma unroll
            for (int r = 0; r < 4; ++r) column[place<A, threads_down>(down_, i + r)] = sum_[i + r][j];
          } else {
            *reinterpret_cast<float4*>(column + place<A, threads_down>(down_, i)) =
                make_float4(sum_[i][j], sum_[i + 1][j], sum_[i + 2][j], sum_[i + 3][j]);
          }
        }
      }
    }

   private:
    /// Where in the tile the i-th row or column of a thread is: reads of 16 bytes go along the dense axis, so
    /// threads own every n-th line of a tile stored by k, and groups of four of one stored across.
    template <class Tile, int n>
    __device__ __forceinline__ static int place(int thread, int i) {
      return Tile::by_k ? thread + i * n : 4 * (thread + i / 4 * n) + i % 4;
    }
    template <class Tile, int n, int count>
    __device__ __forceinline__ static void load(float (&to)[4][count], const float* tile, int thread, int k) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if constexpr (Tile::by_k) {
          const float4 four =
              *reinterpret_cast<const float4*>(Tile::element(tile, place<Tile, n>(thread, i), k));
          to[0][i] = four.x;
          to[1][i] = four.y;
          to[2][i] = four.z;
          to[3][i] = four.w;
        } else {
          const int kk = i % 4, group = i / 4 * 4;  // count reads: four of k for each group of four
          const float4 four =
              *reinterpret_cast<const float4*>(Tile::element(tile, place<Tile, n>(thread, group), k + kk));
          to[kk][group] = four.x;
          to[kk][group + 1] = four.y;
          to[kk][group + 2] = four.z;
          to[kk][group + 3] = four.w;
        }
      }
    }

    int down_, across_;  // of the thread in the tile
    float sum_[thread_rows][thread_columns] = {};
  };
};

}  // namespace
}  // namespace small_gemm

std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_f32() {
  using namespace small_gemm;
  static const SmallGemmKernels tiles[] = {
      kernels<Simt<32, 32, 32, 4, 4, 4>>(), kernels<Simt<64, 64, 16, 4, 8, 4>>(),
      kernels<Simt<128, 64, 16, 4, 8, 8>>(), kernels<Simt<128, 128, 16, 4, 8, 8>>()};
  return tiles;
}

}  // namespace ferrite::cuda
