// softmax and log_softmax: a row is read once, its largest element and its sum are found together, and it is
// written once.
#include "backend_cuda/kit/ring.cuh"
#include "ferrite/ops/softmax.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct Output {
  void* y;
  std::int64_t length;
  bool log;
};
template <class In>
struct SoftmaxArgs {
  In in;
  Output out;
};

template <class T, int lanes, class RowsOrRing>
__device__ __forceinline__ void softmax_rows(RowsOrRing& rows, const Output& out) {
  using C = Compute<T>;
  while (rows.next()) {
    MaxAndSum<T> total;
    rows.pass([&](auto each) { total.add(each); });
    total = rows.team().total(total);

    // An infinite maximum makes the whole row NaN.
    constexpr C nan = std::numeric_limits<C>::quiet_NaN();
    T* const y = static_cast<T*>(out.y) + rows.row() * out.length;
    const C last = !is_finite(total.top) ? nan : out.log ? std::log(total.sum) : 1 / total.sum;
    rows.pass([&](auto each) {
      each([&](auto pack, int, auto x) {
        if (out.log) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] = x.of[j] - total.top - last;
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] = exp_for<T>(x.of[j] - total.top) * last;
        }
        write_pack<T, lanes>(y, pack, x, false);
      });
    });
  }
}

template <class T, int lanes, bool resident>
__global__ void __launch_bounds__(most_row_threads, row_blocks<T, lanes, 1>)
    softmax_kernel(const __grid_constant__ SoftmaxArgs<RowsArgs<1>> args) {
  Rows<T, lanes, 1, resident> rows(args.in);
  softmax_rows<T, lanes>(rows, args.out);
}
template <class T, int lanes>
__global__ void __launch_bounds__(most_row_threads, 1)
    softmax_ring_kernel(const __grid_constant__ SoftmaxArgs<RingArgs<1>> args) {
  extern __shared__ __align__(128) unsigned char memory[];
  Ring<T, lanes, 1> rows(args.in, memory);
  softmax_rows<T, lanes>(rows, args.out);
}

void run_softmax(Cuda& cuda, const Call& call, int axis, bool log, const Array& in, const Array& out) {
  if (out.shape().numel() == 0) return;
  const DType dtype = out.dtype();
  axis = normalize_axis(call.op(), axis, out.shape().rank());
  const RowArray x = rows_of(cuda, axis_last(in, axis), dtype);
  Destination y(cuda, axis_last(out, axis), false);
  const int lanes = row_lanes(dtype, x.length, {x.place(), {y.array().data(), x.length}});
  const Output output{y.array().data(), x.length, log};
  RowsOrRingPlan plan(call, dtype, x.count, x.length, lanes, {1});
  visit_floating(dtype, [&]<class T>() {
    plan.visit<T>(
        [&]<int n, bool resident>(const RowPlan& rows) {
          rows.launch(softmax_kernel<T, n, resident>, {{rows.shape(), {x.place()}}, output});
        },
        [&]<int n>(RingPlan& ring) {
          ring.fit(softmax_ring_kernel<T, n>);
          ring.launch(softmax_ring_kernel<T, n>, {{ring.shape(), {x.place()}}, output});
        });
  });
  y.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Softmax& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  run_softmax(cuda, call, op.axis, false, in[0], out[0]);
}
void run(Cuda& cuda, const op::LogSoftmax& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  run_softmax(cuda, call, op.axis, true, in[0], out[0]);
}

}  // namespace ferrite
