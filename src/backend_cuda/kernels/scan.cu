// Running sums. Each line along the axis is cut into chunks: their sums first, then running sums of those,
// then the elements, each chunk from where the one before it ends. CUB's scan passes sums on as they become
// known, in an order that differs between runs; this one gives the same bits always. Floats are added up in
// double, integers in 64 bits.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/packs.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/scan.hpp"
#include "ferrite/ops/standard_math.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class T>
using Running = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

/// Wraps around where S is an integer.
template <class S>
__device__ __forceinline__ S plus(S a, S b) {
  return formulas::Standard<S>{}.add(a, b);
}

/// The elements in the order they are added up. A choice between two constant places keeps packs in
/// registers.
template <class T, int lanes>
__device__ __forceinline__ Pack<T, lanes> ordered(const Pack<T, lanes>& pack, bool reverse) {
  Pack<T, lanes> result;
#pragma unroll
  for (int v = 0; v < lanes; ++v) result.lane[v] = reverse ? pack.lane[lanes - 1 - v] : pack.lane[v];
  return result;
}

/// Lines that lie dense in memory, one after the other. A warp takes one chunk, this many packs per thread at
/// a time.
constexpr int packs_at_once = 4;

template <class T>
struct ScanRowsArgs {
  const T* in;
  T* out;
  Running<T>* sums;  // [rows, chunks]
  std::int64_t rows, length, chunk;
  Divider chunks;
  bool reverse;
};

/// What a warp of the two kernels below works on.
template <class T, int lanes>
struct Chunk {
  const ScanRowsArgs<T>& args;
  std::int64_t item, row, begin, end;

  __device__ __forceinline__ explicit Chunk(const ScanRowsArgs<T>& a)
      : args(a),
        item((static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) / 32),
        row(a.chunks.quotient(item)),
        begin((item - row * a.chunks.divisor) * a.chunk),
        end(begin + a.chunk < a.length ? begin + a.chunk : a.length) {}
  /// The place of elements i to i + lanes - 1.
  __device__ __forceinline__ std::int64_t at(std::int64_t i) const {
    return row * args.length + (args.reverse ? args.length - i - lanes : i);
  }
  /// Those of one thread, zeros beyond the end.
  __device__ __forceinline__ void load(Pack<T, lanes> (&packs)[packs_at_once], std::int64_t first) const {
#pragma unroll
    for (int u = 0; u < packs_at_once; ++u) {
      const std::int64_t i = first + (u * 32 + threadIdx.x % 32) * lanes;
      packs[u] = {};
      if (i < end) packs[u] = ordered(load_pack<lanes>(args.in + at(i)), args.reverse);
    }
  }
};

template <class T, int lanes>
__global__ void __launch_bounds__(block_threads)
    row_sums_kernel(const __grid_constant__ ScanRowsArgs<T> args) {
  const Chunk<T, lanes> chunk(args);
  if (chunk.row >= args.rows) return;
  Running<T> sum = 0;
  for (std::int64_t first = chunk.begin; first < chunk.end; first += packs_at_once * 32 * lanes) {
    Pack<T, lanes> packs[packs_at_once];
    chunk.load(packs, first);
#pragma unroll
    for (int i = 0; i < packs_at_once * lanes; ++i)
      sum = plus(sum, convert_to<Running<T>>(packs[i / lanes].lane[i % lanes]));
  }
  for (int delta = 16; delta > 0; delta /= 2) sum = plus(sum, __shfl_down_sync(0xffffffffu, sum, delta));
  if (threadIdx.x % 32 == 0) args.sums[chunk.item] = sum;
}

template <class T, int lanes>
__global__ void __launch_bounds__(block_threads)
    scan_rows_kernel(const __grid_constant__ ScanRowsArgs<T> args) {
  using Sum = Running<T>;
  const Chunk<T, lanes> chunk(args);
  if (chunk.row >= args.rows) return;
  const int thread = threadIdx.x % 32;
  Sum carry = chunk.begin > 0 ? args.sums[chunk.item - 1] : Sum{0};
  for (std::int64_t first = chunk.begin; first < chunk.end; first += packs_at_once * 32 * lanes) {
    Pack<T, lanes> packs[packs_at_once];
    chunk.load(packs, first);
    Sum sums[packs_at_once][lanes],
        upto[packs_at_once];  // within the thread; of this thread and those before it
#pragma unroll
    for (int u = 0; u < packs_at_once; ++u) {
      Sum sum = 0;
#pragma unroll
      for (int v = 0; v < lanes; ++v) sums[u][v] = sum = plus(sum, convert_to<Sum>(packs[u].lane[v]));
      upto[u] = sum;
    }
#pragma unroll
    for (int delta = 1; delta < 32; delta *= 2) {
#pragma unroll
      for (int u = 0; u < packs_at_once; ++u) {
        const Sum other = __shfl_up_sync(0xffffffffu, upto[u], delta);
        if (thread >= delta) upto[u] = plus(other, upto[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < packs_at_once; ++u) {
      const Sum others = __shfl_up_sync(0xffffffffu, upto[u], 1);
      const Sum before = thread == 0 ? carry : plus(carry, others);
      carry = plus(carry, __shfl_sync(0xffffffffu, upto[u], 31));
      const std::int64_t i = first + (u * 32 + thread) * lanes;
#pragma unroll
      for (int v = 0; v < lanes; ++v) packs[u].lane[v] = convert_to<T>(plus(before, sums[u][v]));
      if (i < chunk.end) store_pack(args.out + chunk.at(i), ordered(packs[u], args.reverse));
    }
  }
}

/// Lines side by side. A thread takes one chunk of one line.
template <class T>
struct ColumnsArgs {
  const T* in;
  T* out;
  Running<T>* sums;  // [lines, chunks]
  Axes<2> lines;     // input, output
  Divider line_count;
  std::int64_t length, chunk, in_step, out_step;
  int chunks;
};
constexpr int column_batch = 8;

template <class T, bool write>
__global__ void __launch_bounds__(block_threads) columns_kernel(const __grid_constant__ ColumnsArgs<T> args) {
  using Sum = Running<T>;
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const std::int64_t chunk = args.line_count.quotient(item), line = item - chunk * args.line_count.divisor;
  if (chunk >= args.chunks) return;
  const auto offsets = args.lines.offsets(line);
  const T* const in = args.in + offsets.of[0];
  T* const out = args.out + offsets.of[1];
  Sum* const sums = args.sums + line * args.chunks + chunk;
  const std::int64_t end = ::min(args.length, (chunk + 1) * args.chunk);
  Sum sum = write && chunk > 0 ? sums[-1] : Sum{0};
  for (std::int64_t first = chunk * args.chunk; first < end; first += column_batch) {
    T x[column_batch];
#pragma unroll
    for (int u = 0; u < column_batch; ++u)
      if (first + u < end) x[u] = in[(first + u) * args.in_step];
#pragma unroll
    for (int u = 0; u < column_batch; ++u) {
      if (first + u >= end) break;
      sum = plus(sum, convert_to<Sum>(x[u]));
      if (write) out[(first + u) * args.out_step] = convert_to<T>(sum);
    }
  }
  if (!write) *sums = sum;
}

template <class T>
void scan_rows(const Call& call, const T* in, T* out, std::int64_t rows, std::int64_t length, bool reverse);

/// The running sums of [lines, chunks] sums, in place.
template <class S>
void scan_sums(const Call& call, S* sums, std::int64_t lines, std::int64_t chunks) {
  scan_rows<S>(call, sums, sums, lines, chunks, false);
}

template <int lanes, class T>
void scan_rows_by(const Call& call, ScanRowsArgs<T> args) {
  // 31 warps of 2 KiB on each of an H200's multiprocessors. A row is cut where that leaves 16 steps a chunk.
  constexpr std::int64_t enough_warps = 4096, step = packs_at_once * 32 * lanes;
  const std::int64_t wanted =
      std::clamp<std::int64_t>(enough_warps / args.rows, 1, divide_up(args.length, 16 * step));
  args.chunk = divide_up(divide_up(args.length, wanted), step) * step;
  args.chunks = Divider(divide_up(args.length, args.chunk));
  const std::int64_t blocks = divide_up(args.rows * args.chunks.divisor * 32, block_threads);
  std::optional<Scratch<Running<T>>> sums;
  if (args.chunks.divisor > 1) {
    args.sums = sums.emplace(call, args.rows * args.chunks.divisor).data();
    launch(call, row_sums_kernel<T, lanes>, blocks, args);
    scan_sums(call, args.sums, args.rows, args.chunks.divisor);
  }
  launch(call, scan_rows_kernel<T, lanes>, blocks, args);
}

template <class T>
void scan_rows(const Call& call, const T* in, T* out, std::int64_t rows, std::int64_t length, bool reverse) {
  constexpr int lanes = pack_lanes<T>;
  const ScanRowsArgs<T> args{in, out, nullptr, rows, length, 0, {}, reverse};
  if (length % lanes == 0 && is_aligned(in, 16) && is_aligned(out, 16))
    scan_rows_by<lanes>(call, args);
  else
    scan_rows_by<1>(call, args);
}

template <class T>
void scan_columns(const Call& call, const Array& in, const Array& out, const LoopNest& lines, int axis) {
  constexpr std::int64_t enough_threads = 1 << 18, shortest_chunk = 8 * column_batch;
  const std::int64_t length = in.shape()[axis], count = lines.numel();
  const std::int64_t wanted =
      std::clamp<std::int64_t>(enough_threads / count, 1, divide_up(length, shortest_chunk));
  ColumnsArgs<T> args{in.data<T>(),
                      out.data<T>(),
                      nullptr,
                      Axes<2>(lines),
                      Divider(count),
                      length,
                      divide_up(length, wanted),
                      in.layout().strides[axis],
                      out.layout().strides[axis],
                      0};
  args.chunks = static_cast<int>(divide_up(length, args.chunk));
  const std::int64_t blocks = divide_up(count * args.chunks, block_threads);
  std::optional<Scratch<Running<T>>> sums;
  if (args.chunks > 1) {
    args.sums = sums.emplace(call, count * args.chunks).data();
    launch(call, columns_kernel<T, false>, blocks, args);
    scan_sums(call, args.sums, count, args.chunks);
  }
  launch(call, columns_kernel<T, true>, blocks, args);
}

/// Calls f with the type that elements of the output have: floats stay as they are, integers become i64.
template <class F>
void visit_sum_type(DType dtype, F&& f) {
  if (is_floating(dtype))
    visit_floating(dtype, f);
  else
    f.template operator()<std::int64_t>();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Scan& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op.name());
  const int axis = normalize_axis(op.name(), op.axis, in[0].shape().rank());
  const DType dtype = out[0].dtype();
  const Array x = in[0].dtype() == dtype ? in[0] : dense(cuda, in[0], dtype);
  const Layout source = x.layout().slice(axis, 0, 1, 1), target = out[0].layout().slice(axis, 0, 1, 1);
  const Layout* layouts[] = {&source, &target};
  const LoopNest lines(layouts);
  const bool side_by_side =
      lines.numel() >= 32 && std::abs(lines.stride[0][lines.rank - 1]) < std::abs(x.layout().strides[axis]);
  if (side_by_side) {
    const auto from_start = [&](const Array& a) {
      return op.reverse ? a.with_layout(a.layout().flip(axis)) : a;
    };
    visit_sum_type(dtype,
                   [&]<class T>() { scan_columns<T>(call, from_start(x), from_start(out[0]), lines, axis); });
  } else {
    const Array rows = dense(cuda, axis_last(x, axis));
    Destination y(cuda, axis_last(out[0], axis), false);
    const std::int64_t length = x.shape()[axis];
    visit_sum_type(dtype, [&]<class T>() {
      scan_rows<T>(call, reinterpret_cast<const T*>(rows.data()), reinterpret_cast<T*>(y.array().data()),
                   x.shape().numel() / length, length, op.reverse);
    });
    y.commit();
  }
  call.finish();
}

}  // namespace ferrite
