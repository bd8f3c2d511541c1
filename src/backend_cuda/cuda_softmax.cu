// softmax and log_softmax: a row is read once, its largest element and its sum are found together, and it is
// written once.
#include "backend_cuda/rows.cuh"
#include "ferrite/ops/softmax.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct SoftmaxArgs {
  RowsArgs<1> rows;
  void* y;
  bool log;
};

template <class T, int lanes>
__global__ void __launch_bounds__(RowPlan::most_threads, 2)
    softmax_kernel(const __grid_constant__ SoftmaxArgs args) {
  using C = Compute<T>;
  for (Rows<T, lanes, 1> rows(args.rows); rows.next();) {
    MaxAndSum<T> total;
    rows.template pass<false>([&](auto each) {
      C top = total.top;
      each([&](int, std::int64_t, const auto& x) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) top = fmax(top, x.of[j]);
      });
      total.raise(top);
      const C shift = total.shift_for(top);
      each([&](int, std::int64_t, const auto& x) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) total.sum += exp_for<T>(x.of[j] - shift);
      });
    });
    total = rows.team().total(total);

    // An infinite maximum makes the whole row NaN.
    constexpr C nan = std::numeric_limits<C>::quiet_NaN();
    T* const y = static_cast<T*>(args.y) + rows.row() * args.rows.shape.length;
    const C last = !is_finite(total.top) ? nan : args.log ? std::log(total.sum) : 1 / total.sum;
    rows.template pass<true>([&](auto each) {
      each([&](int, std::int64_t index, auto x) {
#pragma unroll
        for (int j = 0; j < lanes; ++j) x.of[j] -= total.top;
        if (args.log) {
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] -= last;
        } else {
#pragma unroll
          for (int j = 0; j < lanes; ++j) x.of[j] = exp_for<T>(x.of[j]) * last;
        }
        write_pack<T, lanes>(y, index, x, false);
      });
    });
  }
}

void run_softmax(Cuda& cuda, const Call& call, int axis, bool log, const Array& in, const Array& out) {
  if (out.shape().numel() == 0) return;
  axis = normalize_axis(call.op(), axis, out.shape().rank());
  const RowArray x = rows_of(cuda, axis_last(in, axis), out.dtype());
  Destination y(cuda, axis_last(out, axis), false);
  const int lanes = row_lanes(out.dtype(), x.length, {x.place(), {y.array().data(), x.length}});
  RowPlan plan(call, out.dtype(), x.count, x.length, lanes);
  const SoftmaxArgs args{{plan.shape(), {x.place()}}, y.array().data(), log};
  visit_floating(out.dtype(), [&]<class T>() {
    const auto kernel = lanes > 1 ? softmax_kernel<T, pack_lanes<T>> : softmax_kernel<T, 1>;
    plan.fit(kernel, 1024);
    plan.launch(kernel, args);
  });
  y.commit();
  call.finish();
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void Cuda::run(const op::Softmax& op, Ins in, Outs out) {
  const Call call(*this, op_name(op));
  run_softmax(*this, call, op.axis, false, in[0], out[0]);
}
void Cuda::run(const op::LogSoftmax& op, Ins in, Outs out) {
  const Call call(*this, op_name(op));
  run_softmax(*this, call, op.axis, true, in[0], out[0]);
}

}  // namespace ferrite
