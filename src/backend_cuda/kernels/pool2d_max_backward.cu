// The gradient of max_pool2d: every element of dx collects the gradients whose index names it. The op knows
// the indices but not the windows they came from, so a block first finds, from the indices of its plane,
// which outputs can name an element of each input row and column. That is a few of them for any pooling, and
// right, if slow, for any indices. Sums are in the order of the outputs: no atomics, the same bits always.
#include <climits>

#include "backend_cuda/kit/indices.cuh"
#include "backend_cuda/kit/shared_memory.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/ops/pool2d.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr int pool_threads = 256;
/// Two bounds for each of four extents, in shared memory.
std::int64_t bounds_bytes(std::int64_t extents) {
  return 2 * static_cast<std::int64_t>(sizeof(int)) * extents;
}

struct Problem {
  std::int64_t planes;
  int strips;  // of input rows, by which a plane is shared among blocks
  int height, width, out_height, out_width;
  bool add;
  FaultReport report;
};

/// low = min(low, value), high = max(high, value). Mostly nothing changes, and reading is cheaper.
__device__ __forceinline__ void widen(int* low, int* high, int value) {
  if (value < *static_cast<volatile int*>(low)) atomicMin(low, value);
  if (value > *static_cast<volatile int*>(high)) atomicMax(high, value);
}

template <class T>
__global__ void __launch_bounds__(pool_threads)
    max_backward_kernel(Problem p, const T* __restrict__ dy, const std::int64_t* __restrict__ index,
                        T* __restrict__ dx) {
  using W = Compute<T>;
  extern __shared__ int shared[];
  const int outs = p.out_height + p.out_width, ins = p.height + p.width;
  // The inputs that each output row and column names; then the outputs that name each input row and column.
  int *const low = shared, *const high = low + outs, *const first = high + outs, *const last = first + ins;
  const int output = p.out_height * p.out_width, area = p.height * p.width;

  for (std::int64_t work = blockIdx.x; work < p.planes * p.strips; work += gridDim.x) {
    const std::int64_t plane = work / p.strips;
    const int strip = static_cast<int>(work % p.strips);
    const T* const gradients = dy + plane * output;
    const std::int64_t* const places = index + plane * output;
    T* const target = dx + plane * area;

    for (int i = threadIdx.x; i < outs; i += pool_threads) {
      low[i] = INT_MAX;
      high[i] = -1;
    }
    for (int i = threadIdx.x; i < ins; i += pool_threads) {
      first[i] = INT_MAX;
      last[i] = -1;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < output; i += pool_threads) {
      const std::int64_t place = places[i];
      if (place < 0 || place >= area) {
        if (strip == 0) p.report(place, area, plane * output + i + 1);
        continue;
      }
      const int at = static_cast<int>(place), row = at / p.width, column = at - row * p.width;
      const int out_row = i / p.out_width, out_column = p.out_height + i - out_row * p.out_width;
      widen(low + out_row, high + out_row, row);
      widen(low + out_column, high + out_column, column);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < outs; i += pool_threads) {
      const bool is_row = i < p.out_height;
      const int base = is_row ? 0 : p.height, name = is_row ? i : i - p.out_height;
      for (int at = low[i]; at <= high[i]; ++at) widen(first + base + at, last + base + at, name);
    }
    __syncthreads();
    const int begin = static_cast<int>(std::int64_t{p.height} * strip / p.strips) * p.width;
    const int end = static_cast<int>(std::int64_t{p.height} * (strip + 1) / p.strips) * p.width;
    for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += pool_threads) {
      const int row = i / p.width, column = p.height + i - row * p.width;
      W sum = 0;
      for (int h = first[row]; h <= last[row]; ++h) {
        for (int w = first[column]; w <= last[column]; ++w) {
          const int out = h * p.out_width + w;
          if (places[out] == i) sum += convert_to<W>(gradients[out]);
        }
      }
      target[i] = convert_to<T>(p.add ? convert_to<W>(target[i]) + sum : sum);
    }
    __syncthreads();  // before the bounds are reset
  }
}

}  // namespace

bool accepts(const Cuda& cuda, const op::MaxPool2dBackward& op, MetaSpan in) {
  const Shape& y = in[0].shape;
  constexpr std::int64_t own_bytes = 1024;  // more than the kernel has beside them
  const std::int64_t bytes = bounds_bytes(op.input[2] + op.input[3] + y[2] + y[3]) + own_bytes;
  return static_cast<std::size_t>(bytes) <= most_shared_memory(cuda);
}

void run(Cuda& cuda, const op::MaxPool2dBackward& op, Ins in, Outs out, Accumulate mask) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const Array dy = dense(cuda, in[0]), index = dense(cuda, in[1], DType::i64);
  Destination dx(cuda, out[0], accumulates(mask, 0));
  const Shape &x = op.input, &y = dy.shape();
  const std::int64_t planes = x[0] * x[1];
  const int processors = call.properties().multiProcessorCount;
  const auto strips = static_cast<int>(
      std::clamp<std::int64_t>(2 * processors / planes, 1, std::min<std::int64_t>(16, x[2])));
  const Problem p{planes,
                  strips,
                  static_cast<int>(x[2]),
                  static_cast<int>(x[3]),
                  static_cast<int>(y[2]),
                  static_cast<int>(y[3]),
                  dx.add(),
                  FaultReport(call)};
  const auto bytes = static_cast<int>(bounds_bytes(x[2] + x[3] + y[2] + y[3]));
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(planes * strips, 1 << 30));
  visit_floating(dy.dtype(), [&]<class T>() {
    if (bytes > 48 << 10)
      allow_all_shared_memory(call, reinterpret_cast<const void*>(max_backward_kernel<T>));
    max_backward_kernel<T><<<blocks, pool_threads, static_cast<std::size_t>(bytes), call.stream()>>>(
        p, dy.data<T>(), index.data<std::int64_t>(), dx.array().data<T>());
  });
  dx.commit();
  call.finish();
}

}  // namespace ferrite
