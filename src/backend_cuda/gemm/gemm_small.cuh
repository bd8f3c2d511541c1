// Shared by the small products: operand tiles in shared memory, filled ahead of their use by asynchronous
// copies, and the transfer of the sums to memory. An Engine multiplies the tiles: gemm_small_tensor.cuh,
// gemm_small_f32.cu.
#pragma once

#include <algorithm>

#include "backend_cuda/gemm/gemm_small.hpp"
#include "backend_cuda/kit/ptx.cuh"
#include "ferrite/cuda/device.cuh"

namespace ferrite::cuda::small_gemm {

/// A tile of an operand: `extent` of the result's rows or columns by `depth` of the inner dimension, stored
/// along k (by_k) or along the other axis, whichever is dense in memory. In shared memory a line of it is
/// padded so that the reads of a warp meet no bank twice: 16 bytes for reads of 16 bytes down 8 lines, and
/// for tf32 by single elements, 4 lines of 8 neighbours, 32 bytes.
template <class T, int extent, int depth, bool by_k_, int threads>
class Operand {
 public:
  static constexpr bool by_k = by_k_;
  static constexpr int lanes = 16 / static_cast<int>(sizeof(T));
  static constexpr int width = by_k ? depth : extent, lines = by_k ? extent : depth;
  static constexpr int stride = width + (by_k ? lanes : 8);
  static constexpr int elements = lines * stride;

  /// The tiles of rows or columns `first` ... of `size`, from `k` on.
  __device__ Operand(const void* matrix, std::int64_t ld, int first, int size, int k)
      : matrix_(static_cast<const T*>(matrix)),
        line_(static_cast<int>(threadIdx.x) / per_line),
        at_(static_cast<int>(threadIdx.x) % per_line * lanes),
        size_(size - first),
        step_(by_k ? depth : depth * ld),
        line_step_(lines_at_once * ld),
        from_(matrix_ + (by_k ? (first + line_) * ld + k + at_ : (k + line_) * ld + first + at_)) {}

  __device__ static const T* element(const T* tile, int across, int k) {
    return tile + (by_k ? across * stride + k : k * stride + across);
  }

  /// Starts copying the next tile; of it, `left` steps along k exist, the rest becomes zero.
  __device__ __forceinline__ void copy_next(T* tile, int left) {
#pragma unroll
    for (int i = 0; i < lines / lines_at_once; ++i) {
      const int line = line_ + i * lines_at_once;
      const bool exists = line < (by_k ? size_ : left);
      const int count = exists ? max(0, min(lanes, (by_k ? left : size_) - at_)) : 0;
      const T* const from = count > 0 ? from_ + i * line_step_ : matrix_;
      ptx::copy_async(tile + line * stride + at_, from, count * static_cast<int>(sizeof(T)));
    }
    from_ += step_;
  }

 private:
  static constexpr int per_line = width / lanes, lines_at_once = threads / per_line;
  static_assert(threads % per_line == 0 && lines % lines_at_once == 0);

  const T* matrix_;
  int line_, at_, size_;
  std::int64_t step_, line_step_;
  const T* from_;
};

/// Sums lie in shared memory by columns; the padding lets a warp of the tensor cores write 4 of them at once.
template <class Engine>
inline constexpr int sums_stride = Engine::rows + 4;

template <class Engine, bool a_by_k, bool b_by_k>
struct Layout {
  using T = typename Engine::Element;
  using A = Operand<T, Engine::rows, Engine::depth, a_by_k, Engine::threads>;
  using B = Operand<T, Engine::columns, Engine::depth, b_by_k, Engine::threads>;
  static constexpr int stage_elements = A::elements + B::elements;
  static constexpr int shared_bytes =
      std::max(Engine::stages * stage_elements * static_cast<int>(sizeof(T)),
               Engine::columns* sums_stride<Engine>* static_cast<int>(sizeof(float)));
};

/// The sums of all parts, 4 rows of one column per thread, from the shared memory of the blocks to D. Part
/// `rank` stores its share of the columns.
template <class Engine>
__device__ __forceinline__ void store(const SmallGemmArguments& p, const float* sums, int row, int column,
                                      int rank, int parts) {
  using T = typename Engine::Element;
  constexpr int quads = Engine::rows / 4;
  const int share = quads * Engine::columns / parts;
  T* const d = static_cast<T*>(p.d) + blockIdx.z * p.stride_d;
  for (int i = static_cast<int>(threadIdx.x); i < share; i += Engine::threads) {
    const int quad = (rank * share + i) % quads, c = (rank * share + i) / quads;
    const float* const own = sums + c * sums_stride<Engine> + 4 * quad;
    float4 part[most_small_gemm_parts];
    if (parts == 1) {
      part[0] = *reinterpret_cast<const float4*>(own);
    } else {
#pragma unroll
      for (int j = 0; j < most_small_gemm_parts; ++j)
        if (j < parts) part[j] = ptx::load_from_block(own, j);
    }
    float sum[4] = {part[0].x, part[0].y, part[0].z, part[0].w};
#pragma unroll
    for (int j = 1; j < most_small_gemm_parts; ++j) {
      if (j >= parts) continue;
      sum[0] += part[j].x;
      sum[1] += part[j].y;
      sum[2] += part[j].z;
      sum[3] += part[j].w;
    }
    const int r = row + 4 * quad;
    if (column + c >= p.n || r >= p.m) continue;
    T* const to = d + (column + c) * p.ldd + r;
    if (r + 4 <= p.m) {
      auto* const pack = reinterpret_cast<Pack<T, 4>*>(to);
      Pack<T, 4> value = {};
      if (p.add) value = *pack;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        value.lane[j] = convert_to<T>(p.add ? convert_to<float>(value.lane[j]) + sum[j] : sum[j]);
      *pack = value;
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (r + j < p.m) to[j] = convert_to<T>(p.add ? convert_to<float>(to[j]) + sum[j] : sum[j]);
    }
  }
}

/// Grid: tiles of rows times parts, tiles of columns, batch; a cluster is the parts of one tile.
template <class Engine, bool a_by_k, bool b_by_k>
__global__ void __launch_bounds__(Engine::threads) kernel(const SmallGemmArguments p) {
  using Tiles = Layout<Engine, a_by_k, b_by_k>;
  using T = typename Engine::Element;
  constexpr int stages = Engine::stages, depth = Engine::depth;
  wait_for_earlier_kernels();
  T* const memory = reinterpret_cast<T*>(ptx::shared_memory());
  const int rank = ptx::block_in_cluster(), parts = ptx::cluster_blocks();
  const int row = ptx::cluster_in_grid() * Engine::rows,
            column = static_cast<int>(blockIdx.y) * Engine::columns;
  const int steps = (p.k + depth - 1) / depth;
  const int first = rank * steps / parts, count = (rank + 1) * steps / parts - first;

  int left = p.k - first * depth;
  typename Tiles::A a(static_cast<const T*>(p.a) + blockIdx.z * p.stride_a, p.lda, row, p.m, first * depth);
  typename Tiles::B b(static_cast<const T*>(p.b) + blockIdx.z * p.stride_b, p.ldb, column, p.n,
                      first * depth);
  const auto copy_stage = [&](int slot) {
    T* const stage = memory + slot * Tiles::stage_elements;
    a.copy_next(stage, left);
    b.copy_next(stage + Tiles::A::elements, left);
    left -= depth;
  };
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) {
    if (i < count) copy_stage(i);
    ptx::commit_copies();
  }

  typename Engine::template Sums<typename Tiles::A, typename Tiles::B> sums;
  int slot = 0, next = stages - 1;
  for (int i = 0; i < count; ++i) {
    ptx::wait_for_copies<stages - 2>();
    __syncthreads();  // stage i is there for all, and all are done with stage i - 1, whose place is next
    if (i + stages - 1 < count) copy_stage(next);
    ptx::commit_copies();
    const T* const stage = memory + slot * Tiles::stage_elements;
    sums.add(stage, stage + Tiles::A::elements);
    next = slot;
    slot = slot + 1 == stages ? 0 : slot + 1;
  }

  ptx::wait_for_copies<0>();
  __syncthreads();  // from here on the memory holds sums
  float* const shared = reinterpret_cast<float*>(memory);
  sums.write(shared);
  if (parts > 1)
    ptx::synchronize_cluster();
  else
    __syncthreads();
  store<Engine>(p, shared, row, column, rank, parts);
  if (parts > 1) ptx::synchronize_cluster();  // others may still read what this block summed
}

template <class Engine>
SmallGemmKernels kernels() {
  const auto pointer = [](auto* function) { return reinterpret_cast<const void*>(function); };
  return {Engine::rows,
          Engine::columns,
          Engine::depth,
          Engine::threads,
          {{pointer(&kernel<Engine, false, false>), Layout<Engine, false, false>::shared_bytes},
           {pointer(&kernel<Engine, false, true>), Layout<Engine, false, true>::shared_bytes},
           {pointer(&kernel<Engine, true, false>), Layout<Engine, true, false>::shared_bytes},
           {pointer(&kernel<Engine, true, true>), Layout<Engine, true, true>::shared_bytes}}};
}

}  // namespace ferrite::cuda::small_gemm
