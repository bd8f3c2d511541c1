// scatter: of several writes to one element the last along the axis wins. A first pass finds the winner of
// every element by an integer maximum, which is the same in any order; a second one lets only winners write.
#include <algorithm>
#include <utility>

#include "backend_cuda/kit/axes.cuh"
#include "backend_cuda/kit/indices.cuh"
#include "backend_cuda/kit/packs.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/scatter.hpp"

namespace ferrite {
namespace cuda {
namespace {

/// Positions along the axis fit in 32 bits, with 0 left for "nobody".
constexpr std::int64_t longest_slab = (std::int64_t{1} << 32) - 2;

struct WinnersArgs {
  std::uint32_t* winners;  // [lines, extent of the axis]
  Indices indices;
  Axes<3> axes;  // index, line, position along the axis
  std::int64_t count;
};
__global__ void __launch_bounds__(block_threads) winners_kernel(const __grid_constant__ WinnersArgs args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= args.count) return;
  const auto offsets = args.axes.offsets(i);
  const std::int64_t element = offsets.of[1] * args.indices.extent + args.indices.at(offsets.of[0]);
  atomicMax(args.winners + element, static_cast<std::uint32_t>(offsets.of[2]) + 1);
}

struct ScatterArgs {
  void* out;
  const void* source;
  const std::uint32_t* winners;
  Indices indices;
  Axes<5> axes;  // source, index, output but for the axis, line, position along the axis
  std::int64_t count, axis_stride;
};
template <class Unit>
__global__ void __launch_bounds__(block_threads) scatter_kernel(const __grid_constant__ ScatterArgs args) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= args.count) return;
  const auto offsets = args.axes.offsets(i);
  const std::int64_t index = args.indices.at(offsets.of[1]);
  const std::uint32_t winner = args.winners[offsets.of[3] * args.indices.extent + index];
  if (winner != static_cast<std::uint32_t>(offsets.of[4]) + 1) return;
  static_cast<Unit*>(args.out)[offsets.of[2] + index * args.axis_stride] =
      static_cast<const Unit*>(args.source)[offsets.of[0]];
}

/// Writes a slab of positions along the axis.
void scatter(const Call& call, const Array& out, const Array& index, const Array& source, int axis) {
  const Shape& shape = index.shape();
  const int rank = shape.rank();
  Layout target{shape, out.layout().strides, 0}, from{shape, source.layout().strides, 0};
  const std::int64_t axis_stride = std::exchange(target.strides[axis], 0);
  // Lines that share their indices (broadcast) share their winners.
  Layout once = index.layout(), line{shape, Shape::filled(rank, 0), 0}, position = line;
  position.strides[axis] = 1;
  std::int64_t lines = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (i == axis) continue;
    if (once.strides[i] == 0) {
      once.shape[i] = 1;
    } else {
      line.strides[i] = lines;
      lines *= shape[i];
    }
  }
  const Indices indices(call, index, out.shape()[axis]);
  const Scratch<std::uint32_t> winners(call, lines * indices.extent);
  check(
      cudaMemsetAsync(winners.data(), 0, static_cast<std::size_t>(lines * indices.extent) * 4, call.stream()),
      call.op());

  const Layout line_once{once.shape, line.strides, 0}, position_once{once.shape, position.strides, 0};
  const Layout* first[] = {&once, &line_once, &position_once};
  const LoopNest first_nest(first);
  launch(call, winners_kernel, divide_up(first_nest.numel(), block_threads),
         WinnersArgs{winners.data(), indices, Axes<3>(first_nest), first_nest.numel()});

  const Layout* second[] = {&from, &index.layout(), &target, &line, &position};
  const LoopNest second_nest(second);
  const std::size_t size = size_of(out.dtype());
  const auto kernel = size == 8   ? scatter_kernel<uint2>
                      : size == 4 ? scatter_kernel<std::uint32_t>
                      : size == 2 ? scatter_kernel<std::uint16_t>
                                  : scatter_kernel<std::uint8_t>;
  launch(call, kernel, divide_up(second_nest.numel(), block_threads),
         ScatterArgs{out.data(), source.data(), winners.data(), indices, Axes<5>(second_nest),
                     second_nest.numel(), axis_stride});
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Scatter& op, Ins in, Outs out) {
  if (out[0].shape().numel() > 0) copy_into(cuda, in[0], out[0]);
  if (in[1].shape().numel() == 0) return;
  const Call call(cuda, op.type_name);
  const int axis = normalize_axis(op.type_name, op.axis, in[0].shape().rank());
  const std::int64_t count = in[1].shape()[axis];
  const auto slab = [&](const Array& x, std::int64_t start, std::int64_t length) {
    return x.with_layout(x.layout().slice(axis, start, length, 1));
  };
  for (std::int64_t start = 0; start < count; start += longest_slab) {
    const std::int64_t length = std::min(longest_slab, count - start);
    cuda::scatter(call, out[0], slab(in[1], start, length), slab(in[2], start, length), axis);
  }
  call.finish();
}

}  // namespace ferrite
