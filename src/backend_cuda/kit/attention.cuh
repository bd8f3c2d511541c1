// Shared by the attention kernels: tiles of 64 rows in shared memory, products of tiles, and scores. A block
// has 16 x 16 threads; thread (x, y) owns rows y, y + 16, ... of a tile of results. All arithmetic is f32.
#pragma once

#include "backend_cuda/kit/shared_memory.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda::attention {

constexpr int tile = 64, side = 16, threads = side * side, per_thread = tile / side;
/// Rows start 16 bytes apart in the banks, so that 8 threads reading 16 bytes of 8 rows do not collide.
constexpr int padding = 4;
constexpr int square_stride = tile + padding;
constexpr float hidden = -std::numeric_limits<float>::infinity();

/// [B, H, rows, columns] of any strides, in elements.
template <class T>
struct Heads {
  T* data;
  std::int64_t batch, head, row, column;

  Heads(const Array& x)
      : data(x.data<std::remove_const_t<T>>()),
        batch(x.layout().strides[0]),
        head(x.layout().strides[1]),
        row(x.layout().strides[2]),
        column(x.layout().strides[3]) {}
  __device__ T* at(std::int64_t b, std::int64_t h) const { return data + b * batch + h * head; }
};

/// A bool mask keeps; the others are added.
enum class MaskKind : std::uint8_t { none, keeps, f32, f16, bf16 };
struct Mask {
  const void* data = nullptr;
  MaskKind kind = MaskKind::none;
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

/// The place where a block works, and the inputs of its scores.
struct Problem {
  std::int64_t heads, queries, keys;
  int depth, width;  // columns of q and k, of v and o
  bool causal;
  float scale;
  Mask mask;

  /// Keys [0, keys_seen) are those that causality lets the query see.
  __device__ std::int64_t keys_seen(std::int64_t query) const {
    if (!causal) return keys;
    const std::int64_t seen = query + keys - queries + 1;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }
  __device__ float score(float product, std::int64_t b, std::int64_t h, std::int64_t query,
                         std::int64_t key) const {
    if (query >= queries || key >= keys_seen(query)) return hidden;
    const float value = product * scale;
    if (mask.kind == MaskKind::none) return value;
    const std::int64_t at = b * mask.batch + h * mask.head + query * mask.row + key * mask.column;
    switch (mask.kind) {
      case MaskKind::keeps:
        return static_cast<const bool*>(mask.data)[at] ? value : hidden;
      case MaskKind::f16:
        return value + __half2float(static_cast<const __half*>(mask.data)[at]);
      case MaskKind::bf16:
        return value + __bfloat162float(static_cast<const __nv_bfloat16*>(mask.data)[at]);
      default:
        return value + static_cast<const float*>(mask.data)[at];
    }
  }
};

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
                          double scale) {
  const Shape& shape = q.shape();
  Problem p{shape[1],
            shape[2],
            k.shape()[2],
            static_cast<int>(shape[3]),
            static_cast<int>(v.shape()[3]),
            causal,
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

/// f32, f16 and bf16 with heads of up to 128 columns; masks of bool or any of these. floats(64 or 128): the
/// shared memory of the largest kernel.
template <class Floats>
bool takes(const Cuda& cuda, const Meta& q, const Meta& v, const Meta* mask, Floats&& floats) {
  const int columns = q.shape[3] <= 64 && v.shape[3] <= 64 ? 64 : 128;
  if (static_cast<std::size_t>(floats(columns)) * sizeof(float) > most_shared_memory(cuda)) return false;
  const auto narrow = [](DType d) { return is_floating(d) && d != DType::f64; };
  return narrow(q.dtype) && q.shape[3] <= 128 && v.shape[3] <= 128 &&
         (!mask || mask->dtype == DType::bool_ || narrow(mask->dtype));
}

/// Calls f.template operator()<T, most>() with the dtype, and 64 or 128 as the room for columns.
template <class F>
void visit(DType dtype, int columns, F&& f) {
  visit_floating(dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      if (columns <= 64)
        f.template operator()<T, 64>();
      else
        f.template operator()<T, 128>();
    }
  });
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
