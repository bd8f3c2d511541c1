// The product for everything that cuBLASLt does not take. 64 x 64 tiles of the result, 16 of the inner
// dimension at a time through shared memory, 4 x 4 sums per thread; strides and batches of any kind.
#include <algorithm>

#include "backend_cuda/gemm/gemm.hpp"
#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda {
namespace {

constexpr int tile = 64, depth = 16, side = 16, per_thread = tile / side;

/// Integers are added modulo 2^n, so 32 bits give the same i32 and u8 as 64 would.
template <class T>
using ProductSum =
    std::conditional_t<std::is_integral_v<T>,
                       std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>, Compute<T>>;

template <class T, class R>
__global__ void __launch_bounds__(side* side) product_kernel(Product p, std::int64_t tiles) {
  using S = ProductSum<T>;
  __shared__ S lhs_tile[depth][tile + 1], rhs_tile[depth][tile + 1];
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const std::int64_t row_tiles = divide_up(p.rows, tile), column_tiles = divide_up(p.columns, tile);

  for (std::int64_t work = blockIdx.x; work < tiles; work += gridDim.x) {
    const T* lhs = static_cast<const T*>(p.lhs.data);
    const T* rhs = static_cast<const T*>(p.rhs.data);
    R* out = static_cast<R*>(p.out.data);
    std::int64_t index = work / (row_tiles * column_tiles);
    for (int axis = p.batch_axes - 1; axis >= 0; --axis) {
      const BatchAxis& b = p.batch[axis];
      const std::int64_t at = index % b.extent;
      index /= b.extent;
      lhs += at * b.lhs;
      rhs += at * b.rhs;
      out += at * b.out;
    }
    const std::int64_t row = work / column_tiles % row_tiles * tile, column = work % column_tiles * tile;

    S sum[per_thread][per_thread] = {};
    for (std::int64_t k = 0; k < p.inner; k += depth) {
      for (int i = threadIdx.x; i < tile * depth; i += side * side) {
        // Neighbouring threads read along the denser axis.
        const bool by_rows = p.lhs.row_stride == 1, by_columns = p.rhs.column_stride == 1;
        const int lhs_k = by_rows ? i / tile : i % depth, lhs_row = by_rows ? i % tile : i / depth;
        const int rhs_k = by_columns ? i / tile : i % depth, rhs_column = by_columns ? i % tile : i / depth;
        const bool has_lhs = k + lhs_k < p.inner && row + lhs_row < p.rows;
        const bool has_rhs = k + rhs_k < p.inner && column + rhs_column < p.columns;
        lhs_tile[lhs_k][lhs_row] =
            has_lhs
                ? convert_to<S>(lhs[(row + lhs_row) * p.lhs.row_stride + (k + lhs_k) * p.lhs.column_stride])
                : S{};
        rhs_tile[rhs_k][rhs_column] =
            has_rhs ? convert_to<S>(
                          rhs[(k + rhs_k) * p.rhs.row_stride + (column + rhs_column) * p.rhs.column_stride])
                    : S{};
      }
      __syncthreads();
#pragma unroll
      for (int kk = 0; kk < depth; ++kk) {
        S a[per_thread], b[per_thread];
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
          a[i] = lhs_tile[kk][y + i * side];
          b[i] = rhs_tile[kk][x + i * side];
        }
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
#pragma unroll
          for (int j = 0; j < per_thread; ++j) sum[i][j] += a[i] * b[j];
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        const std::int64_t r = row + y + i * side, c = column + x + j * side;
        if (r >= p.rows || c >= p.columns) continue;
        R* const to = out + r * p.out.row_stride + c * p.out.column_stride;
        *to = convert_to<R>(p.add ? convert_to<S>(*to) + sum[i][j] : sum[i][j]);
      }
    }
  }
}

}  // namespace

void plain_product(const Call& call, const Product& p) {
  std::int64_t tiles = divide_up(p.rows, tile) * divide_up(p.columns, tile);
  for (int axis = 0; axis < p.batch_axes; ++axis) tiles *= p.batch[axis].extent;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, 1 << 30));
  visit_device_type(p.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 2)
      if (p.result == DType::f32)
        return product_kernel<T, float><<<blocks, side * side, 0, call.stream()>>>(p, tiles);
    if constexpr (!std::is_same_v<T, bool>)
      product_kernel<T, T><<<blocks, side * side, 0, call.stream()>>>(p, tiles);
  });
}

}  // namespace ferrite::cuda
