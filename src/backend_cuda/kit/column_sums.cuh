// Sums over the rows of a matrix, at the speed of memory, of elements that are made on the way. Elements of a
// Source come in packs of `lanes` next to each other:
//
//   Loaded load(at) const                          what is read for the pack at element `at`
//   void take(loaded, at, float (&sums)[lanes])    computes the pack, may write it, and adds it to the sums
//
// A block has a strip of columns and a part of the rows; the parts are summed in order by a second kernel.
#pragma once

#include "backend_cuda/kit/norm_sums.hpp"
#include "backend_cuda/kit/packs.cuh"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {

namespace column_sums {

constexpr int lanes = 8, strip = 32 * lanes, height = block_threads / 32, in_flight = 4;

template <class Source>
struct Args {
  Source source;
  std::int64_t rows, columns, rows_of_part;
  float* partial;  // [parts, columns]
};

template <class Source>
__global__ void __launch_bounds__(block_threads) kernel(const __grid_constant__ Args<Source> args) {
  wait_for_earlier_kernels();
  __shared__ float tile[height][strip];
  const int lane = threadIdx.x % 32, y = threadIdx.x / 32;
  const std::int64_t first = std::int64_t{blockIdx.x} * strip, column = first + lane * lanes,
                     begin = blockIdx.y * args.rows_of_part,
                     end = begin + args.rows_of_part < args.rows ? begin + args.rows_of_part : args.rows;
  float sums[lanes] = {};
  if (column < args.columns) {
    std::int64_t row = begin + y;
    for (; row + (in_flight - 1) * height < end; row += in_flight * height) {
      typename Source::Loaded loaded[in_flight];
#pragma unroll
      for (int i = 0; i < in_flight; ++i)
        loaded[i] = args.source.load((row + i * height) * args.columns + column);
#pragma unroll
      for (int i = 0; i < in_flight; ++i)
        args.source.take(loaded[i], (row + i * height) * args.columns + column, sums);
    }
    for (; row < end; row += height) {
      const std::int64_t at = row * args.columns + column;
      args.source.take(args.source.load(at), at, sums);
    }
  }
#pragma unroll
  for (int v = 0; v < lanes; ++v) tile[y][lane * lanes + v] = sums[v];
  __syncthreads();
  const std::int64_t own = first + threadIdx.x;
  if (own >= args.columns) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < height; ++i) sum += tile[i][threadIdx.x];
  args.partial[blockIdx.y * args.columns + own] = sum;
}

}  // namespace column_sums

/// out [columns], dense and floating, = or += the sums of the columns of a matrix whose extents are not 0 and
/// whose columns are a multiple of 8.
template <class Source>
void sum_columns(const Call& call, const Source& source, std::int64_t rows, std::int64_t columns,
                 const Array& out, bool add) {
  using namespace column_sums;
  constexpr std::int64_t blocks_of_processor = 8, fewest_rows = in_flight * height;
  const std::int64_t strips = divide_up(columns, std::int64_t{strip});
  const std::int64_t wanted = divide_up(call.properties().multiProcessorCount * blocks_of_processor, strips);
  const std::int64_t most = divide_up(rows, fewest_rows);
  const std::int64_t rows_of_part = divide_up(rows, wanted < most ? wanted : most),
                     parts = divide_up(rows, rows_of_part);
  const Scratch<float> partial(call, parts * columns);
  launch(call, kernel<Source>, grid_of(strips, parts), BlockSize{},
         Args<Source>{source, rows, columns, rows_of_part, partial.data()}, Start::early);
  const NormGradients sums{{out.data(), nullptr}, {out.dtype(), out.dtype()}, {add, false}, 1};
  sum_norm_partials(call, partial.data(), false, parts, columns, sums);
}

}  // namespace ferrite::cuda
