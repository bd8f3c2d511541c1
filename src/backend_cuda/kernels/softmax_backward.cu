// The gradients of softmax and log_softmax.
#include "backend_cuda/kit/ring.cuh"
#include "ferrite/ops/softmax.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct Gradient {
  void* dx;
  std::int64_t length;
  bool log, add;
};
template <class In>
struct SoftmaxBackwardArgs {
  In in;  // y, dy
  Gradient out;
};

template <class T, int lanes, class RowsOrRing>
__device__ __forceinline__ void softmax_backward_rows(RowsOrRing& rows, const Gradient& out) {
  using C = Compute<T>;
  while (rows.next()) {
    Sums<C, 1> total;
    rows.pass([&](auto each) {
      each([&](auto, int, const auto& y, const auto& dy) {
        if (out.log) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) total.of[0] += dy.of[j];
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) total.of[0] += y.of[j] * dy.of[j];
        }
      });
    });
    const C sum = rows.team().total(total).of[0];

    T* const dx = static_cast<T*>(out.dx) + rows.row() * out.length;
    rows.pass([&](auto each) {
      each([&](auto pack, int, auto y, const auto& dy) {
        if (out.log) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) y.of[j] = dy.of[j] - exp_for<T>(y.of[j]) * sum;
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) y.of[j] *= dy.of[j] - sum;
        }
        write_pack<T, lanes>(dx, pack, y, out.add);
      });
    });
  }
}

template <class T, int lanes, bool resident>
__global__ void __launch_bounds__(most_row_threads, row_blocks<T, lanes, 2>)
    softmax_backward_kernel(const __grid_constant__ SoftmaxBackwardArgs<RowsArgs<2>> args) {
  Rows<T, lanes, 2, resident> rows(args.in);
  softmax_backward_rows<T, lanes>(rows, args.out);
}
template <class T, int lanes>
__global__ void __launch_bounds__(most_row_threads, 1)
    softmax_backward_ring_kernel(const __grid_constant__ SoftmaxBackwardArgs<RingArgs<2>> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  Ring<T, lanes, 2> rows(args.in, memory);
  softmax_backward_rows<T, lanes>(rows, args.out);
}

void run_softmax_backward(Cuda& cuda, const Call& call, int axis, bool log, Ins in, const Array& out,
                          Accumulate mask) {
  if (out.shape().numel() == 0) return;
  const DType dtype = out.dtype();
  axis = normalize_axis(call.op(), axis, out.shape().rank());
  const RowArray y = rows_of(cuda, axis_last(in[0], axis), dtype);
  const RowArray dy = rows_of(cuda, axis_last(in[1], axis), dtype);
  Destination dx(cuda, axis_last(out, axis), accumulates(mask, 0));
  const int lanes = row_lanes(dtype, y.length, {y.place(), dy.place(), {dx.array().data(), y.length}});
  const Gradient gradient{dx.array().data(), y.length, log, dx.add()};
  RowsOrRingPlan plan(call, dtype, y.count, y.length, lanes, {2});
  visit_floating(dtype, [&]<class T>() {
    plan.visit<T>(
        [&]<int n, bool resident>(const RowPlan& rows) {
          rows.launch(softmax_backward_kernel<T, n, resident>,
                      {{rows.shape(), {y.place(), dy.place()}}, gradient});
        },
        [&]<int n>(RingPlan& ring) {
          ring.fit(softmax_backward_ring_kernel<T, n>);
          ring.launch(softmax_backward_ring_kernel<T, n>,
                      {{ring.shape(), {y.place(), dy.place()}}, gradient});
        });
  });
  dx.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::SoftmaxBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  run_softmax_backward(cuda, call, op.axis, false, in, out[0], mask);
}
void run(Cuda& cuda, const op::LogSoftmaxBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  run_softmax_backward(cuda, call, op.axis, true, in, out[0], mask);
}

}  // namespace ferrite
