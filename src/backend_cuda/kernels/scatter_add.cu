// scatter_add. Where every line has few indices, or lines are many, a thread adds up a line in index order;
// otherwise the indices are sorted (indexed_sums.hpp).
#include <utility>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/indexed_sums.hpp"
#include "backend_cuda/kit/indices.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/scatter_add.hpp"

namespace ferrite {
namespace cuda {
namespace {

/// A thread may go through this many indices one after the other ...
constexpr std::int64_t few_indices = 32;
/// ... or through any number, if there are this many threads.
constexpr std::int64_t many_lines = 1 << 20;

template <class T>
struct AddLinesArgs {
  T* out;
  const T* source;
  Indices indices;
  Axes<3> lines;  // source, index, output
  std::int64_t line_count, count, source_step, index_step, out_step;
};

template <class T>
__global__ void __launch_bounds__(block_threads)
    add_lines_kernel(const __grid_constant__ AddLinesArgs<T> args) {
  using Value = std::conditional_t<std::is_integral_v<T>, std::uint64_t, Compute<T>>;  // integers wrap around
  const std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (line >= args.line_count) return;
  const auto offsets = args.lines.offsets(line);
  for (std::int64_t k = 0; k < args.count; ++k) {
    T* const at =
        args.out + offsets.of[2] + args.indices.at(offsets.of[1] + k * args.index_step) * args.out_step;
    const T x = args.source[offsets.of[0] + k * args.source_step];
    *at = convert_to<T>(static_cast<Value>(convert_to<Value>(*at) + convert_to<Value>(x)));
  }
}

/// The layout with the extents of the index, and one element along the axis.
Layout lines_of(const Array& x, const Shape& index, int axis) {
  Layout lines{index, x.layout().strides, 0};
  lines.shape[axis] = 1;
  return lines;
}

void add_lines(const Call& call, const Array& out, const Array& index, const Array& source, int axis) {
  const Layout lines[] = {lines_of(source, index.shape(), axis), lines_of(index, index.shape(), axis),
                          lines_of(out, index.shape(), axis)};
  const Layout* layouts[] = {&lines[0], &lines[1], &lines[2]};
  const LoopNest nest(layouts);
  visit_device_type(out.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool>) {
      launch(call, add_lines_kernel<T>, divide_up(nest.numel(), block_threads),
             AddLinesArgs<T>{reinterpret_cast<T*>(out.data()), reinterpret_cast<const T*>(source.data()),
                             Indices(call, index, out.shape()[axis]), Axes<3>(nest), nest.numel(),
                             index.shape()[axis], source.layout().strides[axis], index.layout().strides[axis],
                             out.layout().strides[axis]});
    }
  });
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::ScatterAdd& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  const Array &x = in[0], &index = in[1], &source = in[2];
  const int axis = normalize_axis(op.type_name, op.axis, x.shape().rank());
  const std::int64_t indices = index.shape().numel(), count = index.shape()[axis];
  const bool by_lines = indices > 0 && (count <= few_indices || indices / count >= many_lines);
  if (by_lines && size_of(x.dtype()) == 2 && count > 1) {
    // 16-bit floats are added up in f32 and rounded once.
    const Array sums = dense(cuda, x, DType::f32);
    add_lines(call, sums, index, dense(cuda, source, DType::f32), axis);
    copy_into(cuda, sums, out[0]);
    return call.finish();
  }
  if (x.shape().numel() > 0) copy_into(cuda, x, out[0]);
  if (by_lines) {
    add_lines(call, out[0], index, source, axis);
  } else if (indices > 0) {
    Layout target{index.shape(), out[0].layout().strides, out[0].layout().offset};
    const std::int64_t step = std::exchange(target.strides[axis], 0);
    const Layout from{index.shape(), source.layout().strides, source.layout().offset};
    add_indexed(
        call,
        {out[0].with_layout(target), index, source.with_layout(from), x.shape()[axis], step, 1u << axis},
        true);
  }
  call.finish();
}

}  // namespace ferrite
