// The kernels of all reductions. A Fold says what is done with the elements:
//
//   Input, Total, Output                       element read, what has been taken in so far, element written
//   Total start() const                        of nothing
//   void add(Total&, Pack (&)[n], first, step) takes in n packs; lane v of pack u has the place
//                                              first + u * step + v in the reduction
//   void merge(Total&, const Total&) const     any order of merging is right; the kernels' is always the same
//   auto finish(const Total&) const            the result, in a type that converts to Output
//   is_sum                                     results may be added to what the output holds
//   packed                                     worth kernels that read packs
//   auto careful() const, bool failed(total)   optional: a slower fold of the same totals; a thread whose
//                                              total has failed reads its elements again with it
#pragma once

#include <optional>

#include "backend_cuda/kit/packs.cuh"
#include "backend_cuda/kit/reduction.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {

/// op over n values as a balanced tree: short chains, and rounding errors that grow with log n.
template <int n, class T, class Op>
__device__ __forceinline__ T tree(const T* values, Op op) {
  if constexpr (n == 1)
    return values[0];
  else
    return op(tree<n / 2>(values, op), tree<n / 2>(values + n / 2, op));
}

/// Packs a thread has in flight: 64 bytes, and no less than four packs or more than eight.
template <class T, int lanes>
inline constexpr int packs_in_flight = lanes * sizeof(T) >= 16 ? 4 : 8;

/// Calls take(packs, index of the first) for the packs at index, index + step, ... below end: many at a time,
/// and the rest in ever smaller batches.
template <int count, class Load, class Take>
__device__ __forceinline__ void for_each_batch(std::int64_t& index, std::int64_t end, int step, Load load,
                                               Take take) {
  for (; index + (count - 1) * step < end; index += count * step) {
    decltype(load(index)) packs[count];
#pragma unroll
    for (int u = 0; u < count; ++u) packs[u] = load(index + u * step);
    take(packs, index);
  }
  if constexpr (count > 1) for_each_batch<count / 2>(index, end, step, load, take);
}

template <class T>
__device__ __forceinline__ T shuffle_down(const T& value, int delta) {
  static_assert(sizeof(T) % 4 == 0);
  constexpr int words = sizeof(T) / 4;
  std::uint32_t word[words];
  __builtin_memcpy(word, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < words; ++i) word[i] = __shfl_down_sync(0xffffffffu, word[i], delta);
  T result;
  __builtin_memcpy(&result, word, sizeof(T));
  return result;
}

/// Merges the totals of 2^shift neighbouring threads; the result is valid in the first of them. All threads
/// of the block call it.
template <class Fold, class Total>
__device__ __forceinline__ Total merge_group(const Fold& fold, Total total, int shift) {
  __shared__ Total of_warp[block_threads / 32];
  for (int delta = (1 << ::min(shift, 5)) / 2; delta > 0; delta /= 2)
    fold.merge(total, shuffle_down(total, delta));
  if (shift > 5) {
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) of_warp[warp] = total;
    __syncthreads();
    if ((threadIdx.x & ((1u << shift) - 1)) == 0)
      for (int w = 1; w < 1 << (shift - 5); ++w) fold.merge(total, of_warp[warp + w]);
  }
  return total;
}

template <class Fold>
__device__ __forceinline__ void store_result(const Fold& fold, const typename Fold::Total& total,
                                             typename Fold::Output* at, bool add) {
  auto value = fold.finish(total);
  if constexpr (Fold::is_sum) {
    if (add) value += convert_to<decltype(value)>(*at);
  }
  *at = convert_to<typename Fold::Output>(value);
}

/// Calls take(fold, packs in flight), which reads the elements of a thread, and calls it again with the
/// careful fold if one of the totals has failed: then one pack at a time, which needs no more registers.
template <int count, class Fold, class Take, int lanes>
__device__ __forceinline__ void take_elements(const Fold& fold, const typename Fold::Total (&totals)[lanes],
                                              Take take) {
  take(fold, std::integral_constant<int, count>{});
  if constexpr (requires { fold.careful(); }) {
    bool failed = false;
#pragma unroll
    for (int v = 0; v < lanes; ++v) failed |= fold.failed(totals[v]);
    if (failed) take(fold.careful(), std::integral_constant<int, 1>{});
  }
}

/// The arguments of the kernels below. If the work is cut into parts, totals go to `partial` and merge_parts
/// finishes the work.
template <class Fold>
struct ReduceArgs {
  Fold fold;
  const typename Fold::Input* in;
  typename Fold::Output* out;
  typename Fold::Total* partial;
  Axes<2> kept;  // input, output
  std::int64_t results;
  bool add;
};

template <class Fold>
struct ReduceRowsArgs {
  ReduceArgs<Fold> common;
  Axes<1> reduced;  // in packs
  RowsCut cut;
};

template <class Fold, int lanes>
__global__ void __launch_bounds__(block_threads)
    reduce_rows_kernel(const __grid_constant__ ReduceRowsArgs<Fold> args) {
  wait_for_earlier_kernels();
  using Input = typename Fold::Input;
  const ReduceArgs<Fold>& common = args.common;
  const RowsCut& cut = args.cut;
  const Fold& fold = common.fold;
  const int group = 1 << cut.group_shift, lane = threadIdx.x & (group - 1);
  const std::int64_t item =
      (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) >> cut.group_shift;
  // Several parts of a result: a block has one of them.
  const auto parts = static_cast<unsigned>(cut.parts);
  const std::int64_t row = parts == 1 ? item : blockIdx.x / parts, part = parts == 1 ? 0 : blockIdx.x % parts;
  const bool valid = row < common.results;
  const typename Axes<2>::Offsets offsets = common.kept.offsets(valid ? row : 0);
  typename Fold::Total totals[1] = {fold.start()};
  if (valid) {
    const Input* const in = common.in + offsets.of[0];
    const std::int64_t end = ::min(cut.packs, (part + 1) * cut.per_part);
    const auto take = [&]<int count>(const auto& way, std::integral_constant<int, count>) {
      totals[0] = way.start();
      std::int64_t index = part * cut.per_part + lane;
      for_each_batch<count>(
          index, end, group, [&](std::int64_t i) { return load_pack<lanes>(in + args.reduced.offset(i)); },
          [&](const auto& packs, std::int64_t first) {
            way.add(totals[0], packs, first * lanes, group * lanes);
          });
      if (lanes > 1 && part == cut.parts - 1) {
        for (int i = lane; i < cut.tail; i += group) {
          const std::int64_t place = cut.packs * lanes + i;
          const Pack<Input, 1> last[1] = {load_pack<1>(in + place)};
          way.add(totals[0], last, place, 0);
        }
      }
    };
    take_elements<packs_in_flight<Input, lanes>>(fold, totals, take);
  }
  const typename Fold::Total total = merge_group(fold, totals[0], cut.group_shift);
  if (!valid || lane != 0) return;
  if (cut.parts == 1)
    store_result(fold, total, common.out + offsets.of[1], common.add);
  else
    common.partial[item] = total;
}

template <class Fold>
struct ReduceColumnsArgs {
  ReduceArgs<Fold> common;
  Axes<1> reduced;
  std::int64_t length;
  ColumnsCut cut;
};

template <class Fold, int lanes>
__global__ void __launch_bounds__(block_threads)
    reduce_columns_kernel(const __grid_constant__ ReduceColumnsArgs<Fold> args) {
  wait_for_earlier_kernels();
  using Input = typename Fold::Input;
  using Total = typename Fold::Total;
  __shared__ Total shared[lanes][block_threads];
  const ReduceArgs<Fold>& common = args.common;
  const ColumnsCut& cut = args.cut;
  const Fold& fold = common.fold;
  const int width = 1 << cut.tile_shift, height = block_threads >> cut.tile_shift;
  const int row = threadIdx.x >> cut.tile_shift;
  const auto tiles = static_cast<unsigned>(cut.tiles);
  const std::int64_t part = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const std::int64_t unit = tile * width + (threadIdx.x & (width - 1));
  const bool valid = unit < cut.units;
  const typename Axes<2>::Offsets offsets = common.kept.offsets(valid ? unit * lanes : 0);
  Total totals[lanes];
#pragma unroll
  for (int v = 0; v < lanes; ++v) totals[v] = fold.start();
  if (valid) {
    const Input* const in = common.in + offsets.of[0];
    const std::int64_t end = ::min(args.length, (part + 1) * cut.per_part);
    const auto take = [&]<int in_flight>(const auto& way, std::integral_constant<int, in_flight>) {
#pragma unroll
      for (int v = 0; v < lanes; ++v) totals[v] = way.start();
      std::int64_t index = part * cut.per_part + row;
      for_each_batch<in_flight>(
          index, end, height, [&](std::int64_t i) { return load_pack<lanes>(in + args.reduced.offset(i)); },
          [&]<int count>(const Pack<Input, lanes>(&packs)[count], std::int64_t first) {
#pragma unroll
            for (int v = 0; v < lanes; ++v) {
              Pack<Input, 1> column[count];
#pragma unroll
              for (int u = 0; u < count; ++u) column[u].lane[0] = packs[u].lane[v];
              way.add(totals[v], column, first, height);
            }
          });
    };
    take_elements<packs_in_flight<Input, lanes>>(fold, totals, take);
  }
  if (height > 1) {
#pragma unroll
    for (int v = 0; v < lanes; ++v) shared[v][threadIdx.x] = totals[v];
    for (int half = height / 2; half > 0; half /= 2) {
      __syncthreads();
      if (row < half) {
#pragma unroll
        for (int v = 0; v < lanes; ++v) {
          fold.merge(totals[v], shared[v][threadIdx.x + half * width]);
          shared[v][threadIdx.x] = totals[v];
        }
      }
    }
  }
  if (!valid || row != 0) return;
  const std::int64_t out_step = common.kept.stride[1][common.kept.rank - 1];
#pragma unroll
  for (int v = 0; v < lanes; ++v) {
    if (cut.parts == 1)
      store_result(fold, totals[v], common.out + offsets.of[1] + v * out_step, common.add);
    else
      common.partial[part * common.results + unit * lanes + v] = totals[v];
  }
}

template <class Fold>
struct MergePartsArgs {
  ReduceArgs<Fold> common;
  std::int64_t result_step, part_step;
  int parts, shift;
};

/// 2^shift threads for each result.
template <class Fold>
__global__ void __launch_bounds__(block_threads)
    merge_parts_kernel(const __grid_constant__ MergePartsArgs<Fold> args) {
  wait_for_earlier_kernels();
  const ReduceArgs<Fold>& common = args.common;
  const int group = 1 << args.shift, lane = threadIdx.x & (group - 1);
  const std::int64_t result =
      (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) >> args.shift;
  const bool valid = result < common.results;
  typename Fold::Total total = common.fold.start();
  if (valid) {
    const typename Fold::Total* const parts = common.partial + result * args.result_step;
#pragma unroll 4
    for (int p = lane; p < args.parts; p += group) common.fold.merge(total, parts[p * args.part_step]);
  }
  total = merge_group(common.fold, total, args.shift);
  if (valid && lane == 0)
    store_result(common.fold, total, common.out + common.kept.offsets(result).of[1], common.add);
}

template <class Fold>
void merge_parts(const Call& call, const ReduceArgs<Fold>& common, int parts, std::int64_t result_step,
                 std::int64_t part_step) {
  const MergePartsArgs<Fold> args{common, result_step, part_step, parts, merge_shift(parts)};
  launch(call, merge_parts_kernel<Fold>, divide_up(common.results << args.shift, block_threads), args,
         Start::early);
}

template <int lanes, class Fold>
void reduce_rows(const Call& call, const AxisReduction& reduction, ReduceArgs<Fold> common) {
  const RowsCut cut(reduction, lanes);
  std::optional<Scratch<typename Fold::Total>> partial;
  if (cut.parts > 1) common.partial = partial.emplace(call, reduction.results * cut.parts).data();
  launch(call, reduce_rows_kernel<Fold, lanes>, cut.blocks,
         ReduceRowsArgs<Fold>{common, reduction.reduced_axes(lanes), cut}, Start::early);
  if (cut.parts > 1) merge_parts(call, common, cut.parts, cut.parts, 1);
}

template <int lanes, class Fold>
void reduce_columns(const Call& call, const AxisReduction& reduction, ReduceArgs<Fold> common) {
  const ColumnsCut cut(reduction, lanes);
  std::optional<Scratch<typename Fold::Total>> partial;
  if (cut.parts > 1) common.partial = partial.emplace(call, reduction.results * cut.parts).data();
  launch(call, reduce_columns_kernel<Fold, lanes>, cut.blocks,
         ReduceColumnsArgs<Fold>{common, reduction.reduced_axes(1), reduction.length, cut}, Start::early);
  if (cut.parts > 1) merge_parts(call, common, cut.parts, 1, reduction.results);
}

/// With `add`, to what the output holds.
template <class Fold>
void reduce(const Call& call, const AxisReduction& reduction, const Fold& fold, bool add = false) {
  using Input = typename Fold::Input;
  // Across the results each lane has its own total: more than four would take too many registers.
  constexpr int row_lanes = Fold::packed ? pack_lanes<Input> : 1;
  constexpr int column_lanes = row_lanes < 4 ? row_lanes : 4;
  const ReduceArgs<Fold> common{fold,
                                reinterpret_cast<const Input*>(reduction.in.data()),
                                reinterpret_cast<typename Fold::Output*>(reduction.out.data()),
                                nullptr,
                                reduction.kept_axes(),
                                reduction.results,
                                add};
  if (reduction.by_rows) {
    if (reduction.allows_packs(row_lanes)) return reduce_rows<row_lanes>(call, reduction, common);
    reduce_rows<1>(call, reduction, common);
  } else {
    if (reduction.allows_packs(column_lanes)) return reduce_columns<column_lanes>(call, reduction, common);
    reduce_columns<1>(call, reduction, common);
  }
}

}  // namespace ferrite::cuda
