// The team of models/priors/team.hpp on a GPU: a block makes one dataset, and each of its warps takes a
// column at a time. Sums have the order that team.hpp prescribes, which is a warp's own, so the bits equal
// those of the CPU. After every member, its writes are visible to the whole team.
#pragma once

#include "ferrite/cuda/launch.hpp"
#include "models/priors/workspace.hpp"

namespace ferrite::cuda {

using priors::FourierSeries;
using priors::Stream;

inline constexpr int warp_size = 32, block_warps = block_threads / warp_size;

/// f(i, number i) for the numbers of block `b` of a stream that are below n.
template <class F>
__device__ __forceinline__ void four_normals(const Stream& stream, std::uint64_t first, int b, int n, F& f) {
  const Philox4x32::Block w = stream.block(first + static_cast<std::uint64_t>(b));
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const NormalPair<float> pair = priors::portable_normals(w[i], w[i + 1]);
    if (4 * b + i < n) f(4 * b + i, pair.even);
    if (4 * b + i + 1 < n) f(4 * b + i + 1, pair.odd);
  }
}

/// What the inner team of columns() can do, by one warp.
class WarpTeam {
 public:
  template <class F>
  __device__ void each(int n, F&& f) {
    for (int i = lane(); i < n; i += warp_size) f(i);
    __syncwarp();
  }
  template <class F>
  __device__ float sum(int n, F&& f) {
    float sum = 0;
#pragma unroll 4
    for (int i = lane(); i < n; i += warp_size) sum += f(i);
    // Each step adds the same pairs as a tree over the lanes does, so that every lane gets the tree's root.
    for (int width = warp_size / 2; width > 0; width /= 2) sum += __shfl_xor_sync(~0u, sum, width);
    return sum;
  }
  template <class F>
  __device__ int count(int n, F&& f) {
    int found = 0;
    for (int i = lane(); i < n; i += warp_size) found += f(i) ? 1 : 0;
    return __reduce_add_sync(~0u, found);
  }
  template <class F>
  __device__ void once(F&& f) {
    if (lane() == 0) f();
    __syncwarp();
  }
  template <class F>
  __device__ void normals(Stream stream, std::uint64_t first, int n, F&& f) {
    for (int b = lane(); 4 * b < n; b += warp_size) four_normals(stream, first, b, n, f);
    __syncwarp();
  }
  template <class F>
  __device__ void uniforms(Stream stream, std::uint64_t first, int n, F&& f) {
    for (int b = lane(); 4 * b < n; b += warp_size) {
      const Philox4x32::Block w = stream.block(first + static_cast<std::uint64_t>(b));
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (4 * b + i < n) f(4 * b + i, static_cast<float>(w[i] >> 8) * 0x1p-24f);
    }
    __syncwarp();
  }
  __device__ void normals(Stream stream, std::uint64_t first, int n, float* out) {
    normals(stream, first, n, [=](int i, float z) { out[i] = z; });
  }
  __device__ void uniforms(Stream stream, std::uint64_t first, int n, float* out) {
    uniforms(stream, first, n, [=](int i, float u) { out[i] = u; });
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x % warp_size); }
};

// A product goes by tiles of units whose weights lie in shared memory, input by input. A warp takes
// `warp_units` units of a tile and row_group rows, of which a lane has every 32nd.
inline constexpr int tile_units = 64, tile_stride = tile_units + 4, warp_units = 8,
                     lane_rows = priors::row_group / warp_size;

class BlockTeam {
 public:
  /// Shared memory of a team for products with up to `inputs` inputs.
  static std::int64_t shared_bytes(int inputs) {
    return sizeof(float) * static_cast<std::size_t>(tile_stride) * inputs;
  }
  /// `tile` is shared memory of that size, aligned to 16 bytes; `counts` has an element per warp.
  __device__ BlockTeam(float* tile, int* counts) : tile_(tile), counts_(counts) {}

  template <class F>
  __device__ void each(int n, F&& f) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += block_threads) f(i);
    __syncthreads();
  }
  template <class F>
  __device__ void columns(int n, F&& f) {
    WarpTeam inner;
    for (int c = warp(); c < n; c += block_warps) f(c, inner);
    __syncthreads();
  }
  /// Every warp computes the whole sum: waiting for another warp to do it would take longer.
  template <class F>
  __device__ float sum(int n, F&& f) {
    const float sum = WarpTeam().sum(n, f);
    __syncthreads();
    return sum;
  }
  template <class F>
  __device__ int count(int n, F&& f) {
    int found = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += block_threads) found += f(i) ? 1 : 0;
    found = __reduce_add_sync(~0u, found);
    if (threadIdx.x % warp_size == 0) counts_[warp()] = found;
    __syncthreads();
    int total = 0;
    for (int w = 0; w < block_warps; ++w) total += counts_[w];
    __syncthreads();
    return total;
  }
  /// Also waits before: others may still read what f overwrites.
  template <class F>
  __device__ void once(F&& f) {
    __syncthreads();
    if (threadIdx.x == 0) f();
    __syncthreads();
  }

  __device__ void product(const float* weights, const float* bias, const float* in, int from, float* out,
                          int to, int rows) {
    const int row_groups = (rows + priors::row_group - 1) / priors::row_group;
    for (int first = 0; first < to; first += tile_units) {
      const int units = ::min(tile_units, to - first), unit_groups = (units + warp_units - 1) / warp_units;
      load_tile(weights + static_cast<std::int64_t>(first) * from, from, units, unit_groups * warp_units);
      __syncthreads();
      for (int task = warp(); task < unit_groups * row_groups; task += block_warps) {
        const int unit = task % unit_groups * warp_units, row = task / unit_groups * priors::row_group;
        multiply(tile_ + unit, bias + first + unit, in, from,
                 out + static_cast<std::int64_t>(first + unit) * rows, ::min(warp_units, units - unit), row,
                 rows);
      }
      __syncthreads();
    }
  }

  __device__ void fourier(const FourierSeries& series, float* x, int n) {
    constexpr int width = 4;  // values of a thread at once: eight chains hide their latency
    for (int begin = static_cast<int>(threadIdx.x); begin < n; begin += width * block_threads) {
      float values[width];
#pragma unroll
      for (int i = 0; i < width; ++i) values[i] = x[::min(begin + i * block_threads, n - 1)];
      priors::fourier_values(series, values);
#pragma unroll
      for (int i = 0; i < width; ++i)
        if (begin + i * block_threads < n) x[begin + i * block_threads] = values[i];
    }
    __syncthreads();
  }

 private:
  __device__ static int warp() { return static_cast<int>(threadIdx.x / warp_size); }

  /// tile[k][u] = weights[u][k]; zeros for the units that fill up the last warp's.
  __device__ void load_tile(const float* weights, int from, int units, int padded) {
    for (int u = warp(); u < padded; u += block_warps)
      for (int k = static_cast<int>(threadIdx.x % warp_size); k < from; k += warp_size)
        tile_[k * tile_stride + u] = u < units ? weights[static_cast<std::int64_t>(u) * from + k] : 0.0f;
  }

  __device__ static void multiply(const float* weights, const float* bias, const float* in, int from,
                                  float* out, int units, int row, int rows) {
    const int lane = static_cast<int>(threadIdx.x % warp_size);
    float sums[warp_units][lane_rows];
#pragma unroll
    for (int u = 0; u < warp_units; ++u) {
      const float start = u < units ? bias[u] : 0.0f;
#pragma unroll
      for (int j = 0; j < lane_rows; ++j) sums[u][j] = start;
    }
    bool exists[lane_rows];
#pragma unroll
    for (int j = 0; j < lane_rows; ++j) exists[j] = row + lane + j * warp_size < rows;
    const float* x = in + row + lane;
#pragma unroll 2
    for (int k = 0; k < from; ++k, x += rows, weights += tile_stride) {
      float w[warp_units], values[lane_rows];
#pragma unroll
      for (int u = 0; u < warp_units; u += 4)
        *reinterpret_cast<float4*>(w + u) = *reinterpret_cast<const float4*>(weights + u);
#pragma unroll
      for (int j = 0; j < lane_rows; ++j) values[j] = exists[j] ? x[j * warp_size] : 0.0f;
#pragma unroll
      for (int u = 0; u < warp_units; ++u)
#pragma unroll
        for (int j = 0; j < lane_rows; ++j) sums[u][j] = __fmaf_rn(w[u], values[j], sums[u][j]);
    }
#pragma unroll
    for (int u = 0; u < warp_units; ++u)
#pragma unroll
      for (int j = 0; j < lane_rows; ++j)
        if (u < units && exists[j])
          out[static_cast<std::int64_t>(u) * rows + row + lane + j * warp_size] = sums[u][j];
  }

  float* tile_;
  int* counts_;
};

}  // namespace ferrite::cuda
