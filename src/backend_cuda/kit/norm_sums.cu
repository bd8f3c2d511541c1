#include "backend_cuda/kit/norm_sums.hpp"

#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda {
namespace {

constexpr int width = 32, height = 32;

/// Of the block's threads above each other; valid in the first row of threads.
template <class C>
__device__ __forceinline__ C sum_upwards(C x) {
  __shared__ C tile[height][width + 1];
  __syncthreads();
  tile[threadIdx.y][threadIdx.x] = x;
  __syncthreads();
  x = tile[threadIdx.x][threadIdx.y];
  for (int distance = width / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  __syncthreads();
  if (threadIdx.x == 0) tile[0][threadIdx.y] = x;
  __syncthreads();
  return tile[0][threadIdx.x];
}

template <class T, class C>
__device__ __forceinline__ void put(void* out, std::int64_t i, C value, bool add) {
  T& target = static_cast<T*>(out)[i];
  target = convert_to<T>(add ? convert_to<C>(target) + value : value);
}

struct PartialArgs {
  const void* partial;
  std::int64_t parts, length;
  NormGradients out;
};

template <class C>
__global__ void __launch_bounds__(width* height) partial_kernel(const __grid_constant__ PartialArgs args) {
  const int k = blockIdx.y;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * width + threadIdx.x;
  const C* const partial = static_cast<const C*>(args.partial) + k * args.parts * args.length;
  C sum = 0;
  if (column < args.length) {
#pragma unroll 4
    for (std::int64_t p = threadIdx.y; p < args.parts; p += height) sum += partial[p * args.length + column];
  }
  sum = sum_upwards(sum);
  if (threadIdx.y != 0 || column >= args.length) return;
  void* const out = args.out.data[k];
  const bool add = args.out.add[k];
  switch (args.out.dtype[k]) {
    case DType::f64:
      return put<double>(out, column, sum, add);
    case DType::f16:
      return put<__half>(out, column, sum, add);
    case DType::bf16:
      return put<__nv_bfloat16>(out, column, sum, add);
    default:
      return put<float>(out, column, sum, add);
  }
}

struct SlabArgs {
  LongNormRows rows;
  void* partial;
};

template <class T>
__global__ void __launch_bounds__(width* height) slab_kernel(const __grid_constant__ SlabArgs args) {
  using C = Compute<T>;
  const LongNormRows& r = args.rows;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * width + threadIdx.x;
  const std::int64_t parts = gridDim.y, part = blockIdx.y, slab = divide_up(r.rows, parts);
  const std::int64_t end = (part + 1) * slab < r.rows ? (part + 1) * slab : r.rows;
  C dweight = 0, dbias = 0;
  if (column < r.length) {
    for (std::int64_t row = part * slab + threadIdx.y; row < end; row += height) {
      const C dy = convert_to<C>(static_cast<const T*>(r.dy)[row * r.dy_stride + column]);
      const C x = convert_to<C>(static_cast<const T*>(r.x)[row * r.x_stride + column]);
      const C mean = r.mean ? static_cast<const C*>(r.mean)[row] : C{0};
      dweight += dy * ((x - mean) * static_cast<const C*>(r.rstd)[row]);
      dbias += dy;
    }
  }
  dweight = sum_upwards(dweight);
  dbias = sum_upwards(dbias);
  if (threadIdx.y != 0 || column >= r.length) return;
  C* const partial = static_cast<C*>(args.partial) + part * r.length + column;
  partial[0] = dweight;
  if (r.mean) partial[parts * r.length] = dbias;
}

}  // namespace

void sum_norm_partials(const Call& call, const void* partial, bool is_f64, std::int64_t parts,
                       std::int64_t length, const NormGradients& out) {
  if (length == 0) return;
  const dim3 grid(static_cast<unsigned>(divide_up(length, width)), static_cast<unsigned>(out.count));
  const PartialArgs args{partial, parts, length, out};
  if (is_f64)
    partial_kernel<double><<<grid, dim3(width, height), 0, call.stream()>>>(args);
  else
    partial_kernel<float><<<grid, dim3(width, height), 0, call.stream()>>>(args);
}

void slab_norm_sums(const Call& call, const LongNormRows& rows, void* partial, std::int64_t parts) {
  const dim3 grid(static_cast<unsigned>(divide_up(rows.length, width)), static_cast<unsigned>(parts));
  visit_floating(rows.dtype, [&]<class T>() {
    slab_kernel<T><<<grid, dim3(width, height), 0, call.stream()>>>(SlabArgs{rows, partial});
  });
}

}  // namespace ferrite::cuda
