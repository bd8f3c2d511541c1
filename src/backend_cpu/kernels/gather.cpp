// gather: lines along the indexed axis are independent and shared out among the threads.
#include "ferrite/ops/gather.hpp"

#include <algorithm>

#include "backend_cpu/kit/boxes.hpp"
#include "backend_cpu/kit/checked_index.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite {
namespace cpu {
namespace {

/// Calls f(offsets, count) for every innermost line of a box; offsets has one entry per operand.
template <class F>
void for_each_line(const BoxWalk& walk, F&& f) {
  const Box& box = walk.box();
  const LoopNest& nest = walk.nest();
  std::int64_t offset[LoopNest::max_operands], index[max_rank] = {};
  for (int k = 0; k < nest.operands; ++k) offset[k] = walk.offset(k);
  for (int axis = 0; axis >= 0;) {
    f(offset, box.extent[box.rank - 1]);
    for (axis = box.rank - 2; axis >= 0; --axis) {
      const bool more = ++index[axis] < box.extent[axis];
      for (int k = 0; k < nest.operands; ++k)
        offset[k] += more ? nest.stride[k][axis] : -(box.extent[axis] - 1) * nest.stride[k][axis];
      if (more) break;
      index[axis] = 0;
    }
  }
}

template <class E>
void gather(const Array& x, const Array& index, const Array& out, int axis) {
  Layout source = x.layout();
  source.shape = index.shape();
  source.strides[axis] = 0;  // the index says where
  const Layout* layouts[] = {&out.layout(), &index.layout(), &source};
  const BoxWalk all{LoopNest(layouts)};
  const int inner = all.nest().rank - 1;
  const std::int64_t step = x.layout().strides[axis], length = x.shape()[axis];
  const std::int64_t out_step = all.nest().stride[0][inner], index_step = all.nest().stride[1][inner],
                     x_step = all.nest().stride[2][inner];
  parallel_ranges(all.count(), all.boxes_per_chunk(), [&](std::int64_t begin, std::int64_t end) {
    BoxWalk walk = all;
    walk.seek(begin);
    for (std::int64_t i = begin; i < end; ++i, walk.next()) {
      for_each_line(walk, [&](const std::int64_t* offset, std::int64_t n) {
        E* y = out.data<E>() + offset[0];
        const auto* at = index.data<std::int64_t>() + offset[1];
        const E* from = x.data<E>() + offset[2];
        const auto start = [=](std::int64_t chosen) {
          return (chosen < 0 ? chosen + length : chosen) * step;
        };
        if (index_step == 0 && x_step == 1 && out_step == 1) {
          std::copy_n(from + start(*at), n, y);
        } else {
          for (std::int64_t j = 0; j < n; ++j) y[j * out_step] = from[start(at[j * index_step]) + j * x_step];
        }
      });
    }
  });
}

}  // namespace
}  // namespace cpu

void run(Cpu& cpu, const op::Gather& op, Ins in, Outs out) {
  const int axis = normalize_axis(op::Gather::type_name, op.axis, in[0].shape().rank());
  if (out[0].shape().numel() == 0) return;
  const Array index = cpu::checked_index(cpu, "gather", in[1], axis, in[0].shape()[axis]);
  cpu::visit_size(size_of(out[0].dtype()), [&]<class E>() { cpu::gather<E>(in[0], index, out[0], axis); });
}

}  // namespace ferrite
