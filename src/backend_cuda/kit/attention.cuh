// Shared by the attention kernels of f32: tiles of 64 rows in shared memory, and products of tiles. A block
// has 16 x 16 threads; thread (x, y) owns rows y, y + 16, ... of a tile of results.
#pragma once

#include "backend_cuda/kit/attention_16bit.hpp"

namespace ferrite::cuda::attention {

constexpr int tile = 64, side = 16, threads = side * side, per_thread = tile / side;
/// Rows start 16 bytes apart in the banks, so that 8 threads reading 16 bytes of 8 rows do not collide.
constexpr int padding = 4;
constexpr int square_stride = tile + padding;

/// Loads rows [first, first + 64) of one head into shared memory, with zeros beyond the existing rows and
/// columns.
template <int most, class T>
__device__ void load_tile(float* to, const Heads<const T>& x, const T* head, std::int64_t first,
                          std::int64_t rows, int columns) {
  for (int i = threadIdx.x; i < tile * most; i += threads) {
    const int r = i / most, c = i % most;
    const bool inside = first + r < rows && c < columns;
    to[r * (most + padding) + c] =
        inside ? convert_to<float>(head[(first + r) * x.row + c * x.column]) : 0.0f;
  }
}

/// sum[i][j] = row y + 16 i of a times row x + 16 j of b.
template <int most>
__device__ __forceinline__ void multiply_rows(const float* a, const float* b, int columns, int x, int y,
                                              float (&sum)[per_thread][per_thread]) {
  constexpr int stride = most + padding;
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
#pragma unroll
    for (int j = 0; j < per_thread; ++j) sum[i][j] = 0;
  }
#pragma unroll 2
  for (int c = 0; c < columns; c += 4) {
    float4 left[per_thread], right[per_thread];
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      left[i] = *reinterpret_cast<const float4*>(a + (y + i * side) * stride + c);
      right[i] = *reinterpret_cast<const float4*>(b + (x + i * side) * stride + c);
    }
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
#pragma unroll
      for (int j = 0; j < per_thread; ++j) {
        sum[i][j] += left[i].x * right[j].x;
        sum[i][j] += left[i].y * right[j].y;
        sum[i][j] += left[i].z * right[j].z;
        sum[i][j] += left[i].w * right[j].w;
      }
    }
  }
}

/// Columns 4 x ... 4 x + 3, and the same plus 64, of a 64 x most result.
template <int most>
using Columns = float[per_thread][most / side];

/// sum += p v, where p is a square tile and v a tile of rows.
template <int most>
__device__ __forceinline__ void accumulate(const float* p, const float* v, int x, int y, Columns<most>& sum) {
  constexpr int stride = most + padding;
#pragma unroll 2
  for (int k = 0; k < tile; k += 4) {
    alignas(16) float weight[per_thread][4];
#pragma unroll
    for (int i = 0; i < per_thread; ++i)
      *reinterpret_cast<float4*>(weight[i]) =
          *reinterpret_cast<const float4*>(p + (y + i * side) * square_stride + k);
#pragma unroll
    for (int kk = 0; kk < 4; ++kk) {
#pragma unroll
      for (int j = 0; j < most / tile; ++j) {
        const float4 value = *reinterpret_cast<const float4*>(v + (k + kk) * stride + 4 * x + tile * j);
#pragma unroll
        for (int i = 0; i < per_thread; ++i) {
          sum[i][4 * j] += weight[i][kk] * value.x;
          sum[i][4 * j + 1] += weight[i][kk] * value.y;
          sum[i][4 * j + 2] += weight[i][kk] * value.z;
          sum[i][4 * j + 3] += weight[i][kk] * value.w;
        }
      }
    }
  }
}

/// Writes (or adds) rows [first, first + 64) of one head; row i of the thread is scaled by factor[i].
template <int most, class T>
__device__ void store_rows(const Columns<most>& sum, const float (&factor)[per_thread], const Heads<T>& to,
                           T* head, std::int64_t first, std::int64_t rows, int columns, int x, int y,
                           bool add) {
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
    const std::int64_t row = first + y + i * side;
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < most / side; ++j) {
      const int column = 4 * x + tile * (j / 4) + j % 4;
      if (column >= columns) continue;
      T* const place = head + row * to.row + column * to.column;
      const float value = sum[i][j] * factor[i];
      *place = convert_to<T>(add ? convert_to<float>(*place) + value : value);
    }
  }
}

constexpr int tile_floats(int most) { return tile * (most + padding); }
constexpr int square_floats = tile * square_stride;

// Host side.
inline Problem problem_of(const Array& q, const Array& k, const Array& v, const Array* mask, bool causal,
                          std::int64_t window, double scale) {
  const Shape& shape = q.shape();
  Problem p{shape[1],
            shape[1] / std::max<std::int64_t>(k.shape()[1], 1),
            shape[2],
            k.shape()[2],
            static_cast<int>(shape[3]),
            static_cast<int>(v.shape()[3]),
            causal,
            std::min(window, shape[2] + k.shape()[2]),  // as good as any larger, and no sum overflows
            static_cast<float>(scale),
            {}};
  if (!mask) return p;
  const Layout full = mask->layout().expand({shape[0], shape[1], shape[2], p.keys});
  const auto kind = [](DType dtype) {
    switch (dtype) {
      case DType::bool_:
        return MaskKind::keeps;
      case DType::f16:
        return MaskKind::f16;
      case DType::bf16:
        return MaskKind::bf16;
      default:
        return MaskKind::f32;
    }
  };
  p.mask = {mask->data<void>(), kind(mask->dtype()), full.strides[0],
            full.strides[1],    full.strides[2],     full.strides[3]};
  return p;
}

/// f16 and bf16 with heads of up to 256 columns, f32 with up to 128; masks of bool or any of these.
/// floats(64 or 128): the shared memory of the largest kernel of f32.
template <class Floats>
bool takes(const Cuda& cuda, const Meta& q, const Meta& k, const Meta& v, const Meta* mask, Floats&& floats) {
  const std::int64_t columns = std::max(q.shape[3], v.shape[3]), most = q.dtype == DType::f32 ? 128 : 256;
  const auto narrow = [](DType d) { return is_floating(d) && d != DType::f64; };
  if (!narrow(q.dtype) || columns > most || (mask && mask->dtype != DType::bool_ && !narrow(mask->dtype)))
    return false;
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  if (q.shape[1] == 0 || q.shape[2] > longest || k.shape[2] > longest) return false;
  const std::size_t bytes = q.dtype == DType::f32
                                ? static_cast<std::size_t>(floats(columns <= 64 ? 64 : 128)) * sizeof(float)
                                : tensor_core_bytes(columns);
  return bytes <= most_shared_memory(cuda);
}

/// Calls f.template operator()<most>() with 64 or 128 as the room for columns.
template <class F>
void visit_columns(int columns, F&& f) {
  if (columns <= 64)
    f.template operator()<64>();
  else
    f.template operator()<128>();
}

/// Blocks of 16 x 16 threads with this many floats of shared memory, always the same for one kernel.
template <class Kernel, class... Arguments>
void launch(const Call& call, Kernel kernel, std::int64_t blocks, int floats, const Arguments&... arguments) {
  const auto bytes = static_cast<int>(sizeof(float)) * floats;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), call.op());
  kernel<<<static_cast<unsigned>(blocks), threads, static_cast<std::size_t>(bytes), call.stream()>>>(
      arguments...);
}

}  // namespace ferrite::cuda::attention
