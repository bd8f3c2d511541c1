// The gradients of softmax and log_softmax.
#include "backend_cuda/rows.cuh"
#include "ferrite/ops/softmax.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct SoftmaxBackwardArgs {
  RowsArgs<2> rows;  // y, dy
  void* dx;
  bool log, add;
};

template <class T, int lanes>
__global__ void __launch_bounds__(RowPlan::most_threads, 1)
    softmax_backward_kernel(const __grid_constant__ SoftmaxBackwardArgs args) {
  using C = Compute<T>;
  for (Rows<T, lanes, 2> rows(args.rows); rows.next();) {
    Sums<C, 1> total;
    rows.template pass<false>([&](auto each) {
      each([&](int, std::int64_t, const auto& y, const auto& dy) {
        if (args.log) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) total.of[0] += dy.of[j];
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) total.of[0] += y.of[j] * dy.of[j];
        }
      });
    });
    const C sum = rows.team().total(total).of[0];

    T* const dx = static_cast<T*>(args.dx) + rows.row() * args.rows.shape.length;
    rows.template pass<true>([&](auto each) {
      each([&](int, std::int64_t index, auto y, const auto& dy) {
        if (args.log) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) y.of[j] = dy.of[j] - exp_for<T>(y.of[j]) * sum;
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) y.of[j] *= dy.of[j] - sum;
        }
        write_pack<T, lanes>(dx, index, y, args.add);
      });
    });
  }
}

void run_softmax_backward(Cuda& cuda, const Call& call, int axis, bool log, Ins in, const Array& out,
                          Accumulate mask) {
  if (out.shape().numel() == 0) return;
  axis = normalize_axis(call.op(), axis, out.shape().rank());
  const RowArray y = rows_of(cuda, axis_last(in[0], axis), out.dtype());
  const RowArray dy = rows_of(cuda, axis_last(in[1], axis), out.dtype());
  Destination dx(cuda, axis_last(out, axis), accumulates(mask, 0));
  const int lanes = row_lanes(out.dtype(), y.length, {y.place(), dy.place(), {dx.array().data(), y.length}});
  RowPlan plan(call, out.dtype(), y.count, y.length, lanes);
  const SoftmaxBackwardArgs args{{plan.shape(), {y.place(), dy.place()}}, dx.array().data(), log, dx.add()};
  visit_floating(out.dtype(), [&]<class T>() {
    const auto kernel = lanes > 1 ? softmax_backward_kernel<T, pack_lanes<T>> : softmax_backward_kernel<T, 1>;
    plan.fit(kernel, 512);
    plan.launch(kernel, args);
  });
  dx.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void Cuda::run(const op::SoftmaxBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(*this, op_name(op));
  run_softmax_backward(*this, call, op.axis, false, in, out[0], mask);
}
void Cuda::run(const op::LogSoftmaxBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(*this, op_name(op));
  run_softmax_backward(*this, call, op.axis, true, in, out[0], mask);
}

}  // namespace ferrite
