// gather, index_select and embedding: one kernel that copies what indices name. Where an index stands for a
// whole stretch of elements (a row of a table), the stretch is copied in units of up to 16 bytes.
#include <algorithm>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/indices.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/gather.hpp"

namespace ferrite {
namespace cuda {
namespace {

constexpr int units_per_thread = 4;

struct GatherArgs {
  void* out;
  const void* source;
  Indices indices;
  Axes<3> axes;  // output, index, source
  std::int64_t count, axis_stride;
};

template <class Unit>
__global__ void __launch_bounds__(block_threads) gather_kernel(const __grid_constant__ GatherArgs args) {
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (block_threads * units_per_thread) + threadIdx.x;
  // Stage by stage, so that the loads of all units are in flight together.
  Axes<3>::Offsets offsets[units_per_thread];
  std::int64_t given[units_per_thread];
  Unit unit[units_per_thread];
#pragma unroll
  for (int u = 0; u < units_per_thread; ++u) {
    if (first + u * block_threads >= args.count) break;
    offsets[u] = args.axes.offsets(first + u * block_threads);
    given[u] = args.indices.given_at(offsets[u].of[1]);
  }
#pragma unroll
  for (int u = 0; u < units_per_thread; ++u) {
    if (first + u * block_threads >= args.count) break;
    const std::int64_t from = offsets[u].of[2] + args.indices.resolved(given[u]) * args.axis_stride;
    unit[u] = __ldg(static_cast<const Unit*>(args.source) + from);
  }
#pragma unroll
  for (int u = 0; u < units_per_thread; ++u) {
    if (first + u * block_threads >= args.count) break;
    static_cast<Unit*>(args.out)[offsets[u].of[0]] = unit[u];
  }
}

/// out[i] = source[i, with `index[i] * axis_stride` added to the offset]; one shape, index and source
/// broadcast where their strides are 0.
void gather(const Call& call, const Array& out, const Array& index, const Array& source, std::int64_t extent,
            std::int64_t axis_stride) {
  const Layout* layouts[] = {&out.layout(), &index.layout(), &source.layout()};
  LoopNest nest(layouts);
  const int inner = nest.rank - 1;
  const auto size = static_cast<std::int64_t>(size_of(out.dtype()));
  std::int64_t unit = size;
  if (nest.stride[0][inner] == 1 && nest.stride[1][inner] == 0 && nest.stride[2][inner] == 1) {
    std::int64_t common = reinterpret_cast<std::intptr_t>(out.data()) |
                          reinterpret_cast<std::intptr_t>(source.data()) | (nest.extent[inner] * size) |
                          (axis_stride * size) | 16;
    for (int i = 0; i < inner; ++i) common |= (nest.stride[0][i] | nest.stride[2][i]) * size;
    unit = std::max(common & -common, size);  // the largest power of two that divides them all
    const std::int64_t elements = unit / size;
    nest.extent[inner] /= elements;
    axis_stride /= elements;
    for (int i = 0; i < inner; ++i) {
      nest.stride[0][i] /= elements;
      nest.stride[2][i] /= elements;
    }
  }
  const GatherArgs args{out.data(),    source.data(), Indices(call, index, extent),
                        Axes<3>(nest), nest.numel(),  axis_stride};
  const std::int64_t blocks =
      (args.count + block_threads * units_per_thread - 1) / (block_threads * units_per_thread);
  const auto kernel = unit == 16  ? gather_kernel<uint4>
                      : unit == 8 ? gather_kernel<uint2>
                      : unit == 4 ? gather_kernel<unsigned>
                      : unit == 2 ? gather_kernel<unsigned short>
                                  : gather_kernel<unsigned char>;
  launch(call, kernel, blocks, args);
}

/// x under another shape and strides, from the same first element.
Array seen_as(const Array& x, const Shape& shape, const Shape& strides) {
  return x.with_layout({shape, strides, x.layout().offset});
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Gather& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op.type_name);
  const int axis = normalize_axis(op.type_name, op.axis, in[0].shape().rank());
  Shape strides = in[0].layout().strides;
  const std::int64_t axis_stride = std::exchange(strides[axis], 0);
  cuda::gather(call, out[0], in[1], seen_as(in[0], out[0].shape(), strides), in[0].shape()[axis],
               axis_stride);
  call.finish();
}

void run(Cuda& cuda, const op::IndexSelect& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op.type_name);
  const int axis = normalize_axis(op.type_name, op.axis, in[0].shape().rank());
  Shape strides = in[0].layout().strides, along = Shape::filled(strides.rank(), 0);
  const std::int64_t axis_stride = std::exchange(strides[axis], 0);
  along[axis] = in[1].layout().strides[0];
  cuda::gather(call, out[0], seen_as(in[1], out[0].shape(), along), seen_as(in[0], out[0].shape(), strides),
               in[0].shape()[axis], axis_stride);
  call.finish();
}

void run(Cuda& cuda, const op::Embedding& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const Call call(cuda, op.type_name);
  const Layout& table = in[0].layout();
  Shape along = in[1].layout().strides, across = Shape::filled(along.rank(), 0);
  along.push_back(0);
  across.push_back(table.strides[1]);
  cuda::gather(call, out[0], seen_as(in[1], out[0].shape(), along), seen_as(in[0], out[0].shape(), across),
               table.shape[0], table.strides[0]);
  call.finish();
}

}  // namespace ferrite
