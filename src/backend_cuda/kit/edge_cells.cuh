// The edges of many columns, prepared for the search. Each column's range is divided into equal cells, which
// know where their edges begin. One multiplication finds the cell of a value; a search without branches among
// the few edges of the cell does the rest. The cell is a monotone function of the value, edges included, so
// the result is exact. Cells are equal on the axis of the values or on that of their bits, which is nearly
// logarithmic: whichever spreads the edges better.
#pragma once

#include <bit>
#include <cub/block/block_scan.cuh>

#include "ferrite/cuda/device.cuh"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/bucketize.hpp"

namespace ferrite::cuda {

template <class T>
struct Cells {
  T origin, scale;
  std::int32_t by_bits;  // which axis
  std::int32_t window;   // 2^k - 1, at least the number of edges of any cell

  /// From the least to the greatest finite edge; a single cell if these are too close or too far apart.
  static __device__ Cells between(T low, T high, T last, std::int32_t by_bits) {
    Cells cells{T{0}, T{0}, by_bits, 0};
    cells.origin = cells.place(low);
    const T scale = last / (cells.place(high) - cells.origin);
    if (::isfinite(scale)) cells.scale = scale;
    return cells;
  }
  __device__ __forceinline__ T place(T value) const {
    if (!by_bits) return value;
    using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, long long>;
    const T unsigned_zero = value + T{0};  // -0 is 0
    Bits bits;
    __builtin_memcpy(&bits, &unsigned_zero, sizeof bits);
    return static_cast<T>(bits ^ (bits >> (8 * sizeof(T) - 1) & std::numeric_limits<Bits>::max()));
  }
  /// 0 to `last`, for NaN too.
  __device__ __forceinline__ std::int32_t cell(T value, T last) const {
    return static_cast<std::int32_t>(::fmin(::fmax((place(value) - origin) * scale, T{0}), last));
  }
};

/// Of all columns, in device memory.
template <class T>
struct EdgeTable {
  T* edges = nullptr;               // [columns, count + 1], NaN behind those of a column
  std::uint16_t* starts = nullptr;  // [columns, cells]: edges in the cells before
  Cells<T>* columns = nullptr;
  std::int32_t count, cells;

  explicit EdgeTable(std::int64_t edge_count)
      : count(static_cast<std::int32_t>(edge_count)),
        cells(static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(4 * count + 1)))) {}
  /// Of one column's edges and starts.
  __host__ __device__ std::int64_t bytes() const {
    return (count + 1) * std::int64_t{sizeof(T)} + cells * std::int64_t{sizeof(std::uint16_t)};
  }
};
inline constexpr std::int64_t most_edges = 65535;  // that starts can count

template <class T>
struct EdgeTableArgs {
  const double* given;  // [columns, count], NaN in places that are not used
  EdgeTable<T> table;
  Closed closed;
};

/// x >= the result where the edge lies behind x: edges of intervals closed on the right move up by one value.
/// NaN for an edge that no value lies behind.
template <class T>
__device__ __forceinline__ T left_closed_edge(double edge, Closed closed) {
  T own;
  if constexpr (sizeof(T) == 4)
    own = narrow_edge(edge, closed);
  else
    own = edge;
  if (closed == Closed::left) return own;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  return own == infinity ? std::numeric_limits<T>::quiet_NaN() : ::nextafter(own, infinity);
}

/// A block for each column.
template <class T>
__global__ void __launch_bounds__(block_threads)
    edge_table_kernel(const __grid_constant__ EdgeTableArgs<T> args) {
  using Scan = cub::BlockScan<int, block_threads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ int first, last, fullest[2];
  const EdgeTable<T>& table = args.table;
  const int thread = static_cast<int>(threadIdx.x), count = table.count, cells = table.cells;
  const double* const given = args.given + std::int64_t{blockIdx.x} * count;
  T* const edges = table.edges + std::int64_t{blockIdx.x} * (count + 1);
  std::uint16_t* const starts = table.starts + std::int64_t{blockIdx.x} * cells;
  if (thread == 0) {
    first = count;
    last = fullest[0] = fullest[1] = 0;
  }
  int used = 0;
  for (int begin = 0; begin < count; begin += block_threads) {
    T edge = std::numeric_limits<T>::quiet_NaN();
    if (begin + thread < count) edge = left_closed_edge<T>(given[begin + thread], args.closed);
    int before, taken;
    __syncthreads();
    Scan(scan).ExclusiveSum(edge == edge ? 1 : 0, before, taken);
    if (edge == edge) {
      edges[used + before] = edge;
      if (::isfinite(edge)) {
        atomicMin(&first, used + before);
        atomicMax(&last, used + before);
      }
    }
    used += taken;
  }
  for (int i = used + thread; i <= count; i += block_threads) edges[i] = std::numeric_limits<T>::quiet_NaN();
  __syncthreads();

  const T low = first < count ? edges[first] : T{0}, high = first < count ? edges[last] : T{0};
  const T last_cell = static_cast<T>(cells - 1);
  const auto edges_before = [&](const Cells<T>& column, int cell) {
    int begin = 0, end = used;
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (column.cell(edges[middle], last_cell) < cell)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  };
  for (int axis = 0; axis < 2; ++axis) {
    const auto column = Cells<T>::between(low, high, last_cell, axis);
    for (int cell = thread; cell < cells; cell += block_threads) {
      const int end = cell + 1 < cells ? edges_before(column, cell + 1) : used;
      atomicMax(&fullest[axis], end - edges_before(column, cell));
    }
  }
  __syncthreads();
  auto best = Cells<T>::between(low, high, last_cell, fullest[1] < fullest[0]);
  while (best.window < ::min(fullest[0], fullest[1])) best.window = 2 * best.window + 1;
  for (int cell = thread; cell < cells; cell += block_threads)
    starts[cell] = static_cast<std::uint16_t>(edges_before(best, cell));
  if (thread == 0) table.columns[blockIdx.x] = best;
}

}  // namespace ferrite::cuda
