// max_pool2d, avg_pool2d and the gradient of the latter: one thread per element of the result, over dense
// planes. Windows of 2 x 2 and 3 x 3 are unrolled, so that their loads are in flight together.
#include <algorithm>
#include <cmath>

#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/ops/pool2d.hpp"

namespace ferrite {

using namespace cuda;

namespace {

/// One spatial axis.
struct Axis {
  std::int64_t input, output, kernel, step, padding;
};
struct Planes {
  Axis rows, columns;
  std::int64_t count;  // N * C

  Planes(const op::PoolGeometry& g, const Shape& x, const Shape& y)
      : rows{x[2], y[2], g.kernel[0], g.step(0), g.padding[0]},
        columns{x[3], y[3], g.kernel[1], g.step(1), g.padding[1]},
        count(x[0] * x[1]) {}
  constexpr std::int64_t inputs() const { return count * rows.input * columns.input; }
  constexpr std::int64_t outputs() const { return count * rows.output * columns.output; }
};

/// f(place in the plane, in order of the window) for the elements of x under output (h, w). `extent` is the
/// window's if it is a square known at compile time, else 0.
template <class Index, int extent, class F>
__device__ __forceinline__ void for_window(const Planes& p, Index h, Index w, F&& f) {
  const auto height = static_cast<Index>(p.rows.input), width = static_cast<Index>(p.columns.input);
  const Index top = h * static_cast<Index>(p.rows.step) - static_cast<Index>(p.rows.padding);
  const Index left = w * static_cast<Index>(p.columns.step) - static_cast<Index>(p.columns.padding);
  const auto visit = [&](Index i, Index j) {
    const Index row = top + i, column = left + j;
    if (row >= 0 && row < height && column >= 0 && column < width) f(row * width + column);
  };
  if constexpr (extent > 0) {
#pragma unroll
    for (int i = 0; i < extent; ++i) {
#pragma unroll
      for (int j = 0; j < extent; ++j) visit(i, j);
    }
  } else {
    for (Index i = 0; i < static_cast<Index>(p.rows.kernel); ++i) {
      for (Index j = 0; j < static_cast<Index>(p.columns.kernel); ++j) visit(i, j);
    }
  }
}

/// Element i of the planes' results: which plane, row and column.
template <class Index>
struct Place {
  Index plane, row, column;
  __device__ Place(Index i, const Axis& rows, const Axis& columns, std::int64_t Axis::*extent) {
    const auto height = static_cast<Index>(rows.*extent), width = static_cast<Index>(columns.*extent);
    const Index line = i / width;
    column = i - line * width;
    plane = line / height;
    row = line - plane * height;
  }
};

template <class Index>
__device__ Index first_element() {
  return static_cast<Index>(blockIdx.x) * static_cast<Index>(blockDim.x) + static_cast<Index>(threadIdx.x);
}
template <class Index>
__device__ Index element_step() {
  return static_cast<Index>(gridDim.x) * static_cast<Index>(blockDim.x);
}

template <class T, class Index, int extent>
__global__ void __launch_bounds__(256)
    max_kernel(Planes p, const T* __restrict__ x, T* __restrict__ y, std::int64_t* __restrict__ index) {
  using W = Compute<T>;
  const auto count = static_cast<Index>(p.outputs());
  const auto area = static_cast<Index>(p.rows.input * p.columns.input);
  for (Index i = first_element<Index>(); i < count; i += element_step<Index>()) {
    const Place<Index> at(i, p.rows, p.columns, &Axis::output);
    const T* const plane = x + at.plane * area;
    // The first element of the window stands until a larger one comes: a window of -inf has a place too.
    W best = -std::numeric_limits<W>::infinity();
    Index place = -1;
    for_window<Index, extent>(p, at.row, at.column, [&](Index from) {
      const W value = convert_to<W>(plane[from]);
      if (place < 0 || value > best || (value != value && best == best)) {
        best = value;
        place = from;
      }
    });
    y[i] = convert_to<T>(best);
    index[i] = place;
  }
}

template <class T, class Index, int extent>
__global__ void __launch_bounds__(256)
    mean_kernel(Planes p, const T* __restrict__ x, T* __restrict__ y, std::int64_t*) {
  using W = Compute<T>;
  const auto count = static_cast<Index>(p.outputs());
  const auto area = static_cast<Index>(p.rows.input * p.columns.input);
  const W share = W{1} / static_cast<W>(p.rows.kernel * p.columns.kernel);
  for (Index i = first_element<Index>(); i < count; i += element_step<Index>()) {
    const Place<Index> at(i, p.rows, p.columns, &Axis::output);
    const T* const plane = x + at.plane * area;
    W sum = 0;
    for_window<Index, extent>(p, at.row, at.column, [&](Index from) { sum += convert_to<W>(plane[from]); });
    y[i] = convert_to<T>(sum * share);
  }
}

// The two families, for run_pool.
struct MaxPool {
  template <class T, class Index, int extent>
  static auto kernel() {
    return max_kernel<T, Index, extent>;
  }
};
struct MeanPool {
  template <class T, class Index, int extent>
  static auto kernel() {
    return mean_kernel<T, Index, extent>;
  }
};

/// Each element of dx collects its share from the windows it lies in, in their order.
template <class T, class Index>
__global__ void __launch_bounds__(256)
    mean_backward_kernel(Planes p, const T* __restrict__ dy, T* __restrict__ dx, bool add) {
  using W = Compute<T>;
  const auto count = static_cast<Index>(p.inputs());
  const auto area = static_cast<Index>(p.rows.output * p.columns.output);
  const W share = W{1} / static_cast<W>(p.rows.kernel * p.columns.kernel);
  const auto first = [](const Axis& axis, Index at) {
    const Index reach = at + static_cast<Index>(axis.padding) - static_cast<Index>(axis.kernel) + 1;
    const auto step = static_cast<Index>(axis.step);
    return reach <= 0 ? Index{0} : (reach + step - 1) / step;
  };
  const auto last = [](const Axis& axis, Index at) {
    const Index window = (at + static_cast<Index>(axis.padding)) / static_cast<Index>(axis.step);
    const auto most = static_cast<Index>(axis.output) - 1;
    return window < most ? window : most;
  };
  for (Index i = first_element<Index>(); i < count; i += element_step<Index>()) {
    const Place<Index> at(i, p.rows, p.columns, &Axis::input);
    const T* const plane = dy + at.plane * area;
    const Index left = first(p.columns, at.column), right = last(p.columns, at.column);
    W sum = 0;
    for (Index h = first(p.rows, at.row); h <= last(p.rows, at.row); ++h) {
      for (Index w = left; w <= right; ++w)
        sum += convert_to<W>(plane[h * static_cast<Index>(p.columns.output) + w]) * share;
    }
    dx[i] = convert_to<T>(add ? convert_to<W>(dx[i]) + sum : sum);
  }
}

/// 32-bit indices where all of them, and one step of the grid more, fit.
bool fits_32_bits(const Planes& p) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - (1 << 22);
  return std::max(p.inputs(), p.outputs()) < most &&
         std::max({p.rows.kernel, p.columns.kernel, p.rows.step, p.columns.step}) < (1 << 20);
}

unsigned blocks_for(const Call& call, std::int64_t elements) {
  const std::int64_t wanted = std::int64_t{call.properties().multiProcessorCount} * 32;
  return static_cast<unsigned>(std::clamp<std::int64_t>(divide_up(elements, 256), 1, wanted));
}

template <class Pool>
void run_pool(const Call& call, const Planes& p, const Array& x, const Array& y, std::int64_t* index) {
  visit_floating(x.dtype(), [&]<class T>() {
    const auto launch = [&](auto kernel) {
      kernel<<<blocks_for(call, p.outputs()), 256, 0, call.stream()>>>(p, x.data<T>(), y.data<T>(), index);
    };
    const bool square = p.rows.kernel == p.columns.kernel;
    if (!fits_32_bits(p))
      launch(Pool::template kernel<T, std::int64_t, 0>());
    else if (square && p.rows.kernel == 2)
      launch(Pool::template kernel<T, std::int32_t, 2>());
    else if (square && p.rows.kernel == 3)
      launch(Pool::template kernel<T, std::int32_t, 3>());
    else
      launch(Pool::template kernel<T, std::int32_t, 0>());
  });
}

}  // namespace

void run(Cuda& cuda, const op::MaxPool2d& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const Array x = dense(cuda, in[0]);
  Destination y(cuda, out[0], false), index(cuda, out[1], false);
  run_pool<MaxPool>(call, Planes(op.geometry, x.shape(), out[0].shape()), x, y.array(),
                    index.array().data<std::int64_t>());
  y.commit();
  index.commit();
  call.finish();
}

void run(Cuda& cuda, const op::AvgPool2d& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const Array x = dense(cuda, in[0]);
  Destination y(cuda, out[0], false);
  run_pool<MeanPool>(call, Planes(op.geometry, x.shape(), out[0].shape()), x, y.array(), nullptr);
  y.commit();
  call.finish();
}

void run(Cuda& cuda, const op::AvgPool2dBackward& op, Ins in, Outs out, Accumulate mask) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const Array dy = dense(cuda, in[0]);
  Destination dx(cuda, out[0], accumulates(mask, 0));
  const Planes p(op.geometry, op.input, dy.shape());
  visit_floating(dy.dtype(), [&]<class T>() {
    const auto kernel =
        fits_32_bits(p) ? mean_backward_kernel<T, std::int32_t> : mean_backward_kernel<T, std::int64_t>;
    kernel<<<blocks_for(call, p.inputs()), 256, 0, call.stream()>>>(p, dy.data<T>(), dx.array().data<T>(),
                                                                    dx.add());
  });
  dx.commit();
  call.finish();
}

}  // namespace ferrite
