// Transposed copies through tiles of shared memory: moves elements by their size, whatever they are.
#include "backend_cuda/kit/elementwise.cuh"
#include "backend_cuda/kit/transpose.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

/// Tiles of 64 x 64 for small elements, whose rows of 32 would be a sector or two.
template <class E>
constexpr int tile_edge = sizeof(E) <= 2 ? 64 : 32;

/// Axes: the batches, then `rows` (dense in the source), then `columns` (dense in the target). Tiles are
/// numbered with the columns fastest.
struct TransposeArgs {
  const void* in;
  void* out;
  std::int64_t rows, columns;
  std::int64_t in_stride, out_stride;  // of a column in the source, of a row in the target
  int batch_rank;
  Divisor row_tiles, column_tiles;
  Divisor batch[max_rank];
  std::int64_t in_step[max_rank], out_step[max_rank];  // of the batch axes
};

template <class E>
__global__ void __launch_bounds__(block_threads)
    transpose_kernel(const __grid_constant__ TransposeArgs args) {
  constexpr int edge = tile_edge<E>, step = block_threads / edge;
  // A row is longer by four bytes (or one element), so that a column touches all banks.
  constexpr int padding = sizeof(E) < 4 ? 4 / sizeof(E) : 1;
  __shared__ E tile[edge][edge + padding];

  const std::uint32_t above = divide(blockIdx.x, args.column_tiles);
  const std::int64_t column = std::int64_t{blockIdx.x - above * args.column_tiles.divisor} * edge;
  std::uint32_t batch = divide(above, args.row_tiles);
  const std::int64_t row = std::int64_t{above - batch * args.row_tiles.divisor} * edge;
  std::int64_t from = row + column * args.in_stride, to = row * args.out_stride + column;
  for (int axis = args.batch_rank - 1; axis >= 0; --axis) {
    const std::uint32_t next = divide(batch, args.batch[axis]);
    const std::uint32_t index = batch - next * args.batch[axis].divisor;
    from += index * args.in_step[axis];
    to += index * args.out_step[axis];
    batch = next;
  }

  const int x = threadIdx.x % edge, y = threadIdx.x / edge;
  const E* in = static_cast<const E*>(args.in) + from;
#pragma unroll
  for (int i = 0; i < edge; i += step)
    if (row + x < args.rows && column + y + i < args.columns)
      tile[y + i][x] = in[x + (y + i) * args.in_stride];
  __syncthreads();
  E* out = static_cast<E*>(args.out) + to;
#pragma unroll
  for (int i = 0; i < edge; i += step)
    if (column + x < args.columns && row + y + i < args.rows)
      out[x + (y + i) * args.out_stride] = tile[x][y + i];
}

/// A matrix of few columns and dense rows that becomes one with dense columns: tiles of so few columns would
/// be half empty. A block reads block_threads rows as one piece and writes each column of them.
struct NarrowArgs {
  const void* in;
  void* out;
  std::int64_t rows, out_stride;  // out_stride: from column to column
  Divisor packs;                  // of a row
};
constexpr std::int64_t narrow_bytes = 48 << 10;
constexpr std::int64_t narrow_pitch(std::int64_t columns) { return columns | 1; }  // odd: all banks

/// Reads so many elements of a row at once, which divide it.
template <class E, int pack>
__global__ void __launch_bounds__(block_threads) narrow_kernel(const __grid_constant__ NarrowArgs args) {
  struct alignas(sizeof(E) * pack) Pack {
    E elements[pack];
  };
  extern __shared__ __align__(16) std::byte narrow_tile[];
  const auto tile = reinterpret_cast<E*>(narrow_tile);
  const std::uint32_t packs = args.packs.divisor, columns = packs * pack, pitch = columns | 1;
  const std::int64_t first = std::int64_t{blockIdx.x} * block_threads;
  const auto height = static_cast<std::uint32_t>(::min(args.rows - first, std::int64_t{block_threads}));
  const Pack* const in = static_cast<const Pack*>(args.in) + first * packs;
#pragma unroll 4
  for (std::uint32_t i = threadIdx.x; i < height * packs; i += block_threads) {
    const Pack p = in[i];
    E* const to = tile + i * pack + divide(i, args.packs) * (pitch - columns);
#pragma unroll
    for (int j = 0; j < pack; ++j) to[j] = p.elements[j];
  }
  __syncthreads();
  if (threadIdx.x >= height) return;
  E* const out = static_cast<E*>(args.out) + first + threadIdx.x;
  for (std::uint32_t c = 0; c < columns; ++c) out[c * args.out_stride] = tile[threadIdx.x * pitch + c];
}

/// The axis along which the source is dense, if it is worth tiles; -1 else.
int source_axis(const LoopNest& nest) {
  constexpr std::int64_t least = 8;
  const int last = nest.rank - 1;
  if (nest.stride[0][last] != 1 || nest.extent[last] < least) return -1;
  if (nest.stride[1][last] == 0 || nest.stride[1][last] == 1) return -1;  // rows
  for (int axis = 0; axis < last; ++axis)
    if (nest.stride[1][axis] == 1 && nest.extent[axis] >= least) return axis;
  return -1;
}

template <class E>
void launch_transpose(const Call& call, TransposeArgs args, std::int64_t batches) {
  constexpr int edge = tile_edge<E>;
  if constexpr (sizeof(E) >= 4) {
    const std::int64_t bytes = block_threads * narrow_pitch(args.rows) * std::int64_t{sizeof(E)};
    if (batches == 1 && args.in_stride == args.rows && bytes <= narrow_bytes) {
      constexpr int most = 16 / sizeof(E);
      const bool aligned = args.rows % most == 0 && reinterpret_cast<std::uintptr_t>(args.in) % 16 == 0;
      const NarrowArgs narrow{args.in, args.out, args.columns, args.out_stride,
                              Divisor(static_cast<std::uint32_t>(aligned ? args.rows / most : args.rows))};
      return launch(call, aligned ? narrow_kernel<E, most> : narrow_kernel<E, 1>,
                    grid_of(divide_up(args.columns, block_threads)), {block_threads, bytes}, narrow);
    }
  }
  const std::int64_t row_tiles = divide_up(args.rows, edge), column_tiles = divide_up(args.columns, edge);
  args.row_tiles = Divisor(static_cast<std::uint32_t>(row_tiles));
  args.column_tiles = Divisor(static_cast<std::uint32_t>(column_tiles));
  launch(call, transpose_kernel<E>, batches * row_tiles * column_tiles, args);
}

}  // namespace

bool transpose(const Call& call, const Array& from, const Array& to) {
  const Layout* const layouts[] = {&to.layout(), &from.layout()};
  const LoopNest nest(layouts);
  const int dense_axis = source_axis(nest), last = nest.rank - 1;
  if (dense_axis < 0) return false;
  TransposeArgs args{};
  args.in = from.data();
  args.out = to.data();
  args.rows = nest.extent[dense_axis];
  args.columns = nest.extent[last];
  args.in_stride = nest.stride[1][last];
  args.out_stride = nest.stride[0][dense_axis];
  // Tiles are counted with 31 bits: 2 T elements, or a lot of short batches, which are left to others.
  const std::int64_t batches = nest.numel() / args.rows / args.columns;
  const std::int64_t tiles = divide_up(args.rows, 32) * divide_up(args.columns, 32);
  if (batches > std::numeric_limits<std::int32_t>::max() / tiles) return false;
  for (int axis = 0; axis < last; ++axis) {
    if (axis == dense_axis) continue;
    args.batch[args.batch_rank] = Divisor(static_cast<std::uint32_t>(nest.extent[axis]));
    args.out_step[args.batch_rank] = nest.stride[0][axis];
    args.in_step[args.batch_rank++] = nest.stride[1][axis];
  }
  switch (size_of(to.dtype())) {
    case 1:
      launch_transpose<std::uint8_t>(call, args, batches);
      break;
    case 2:
      launch_transpose<std::uint16_t>(call, args, batches);
      break;
    case 4:
      launch_transpose<std::uint32_t>(call, args, batches);
      break;
    default:
      launch_transpose<std::uint64_t>(call, args, batches);
  }
  return true;
}

}  // namespace ferrite::cuda
