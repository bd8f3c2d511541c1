// The gradient of softmax_cross_entropy by itself: for losses that are weighted before they are added up.
#include "backend_cuda/kit/cross_entropy.cuh"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite {
namespace cuda {
namespace {

struct GradientArgs {
  RowsArgs<1> in;
  Targets targets;
  Strided dloss, lse;
  void* dx;
  double smoothing;
  bool add;
};

template <class T, int lanes>
__global__ void __launch_bounds__(most_row_threads, 2)
    cross_entropy_backward_kernel(const __grid_constant__ GradientArgs args) {
  using C = Compute<T>;
  Rows<T, lanes, 1, false> rows(args.in);
  if (!rows.active()) return;
  const std::int64_t row = rows.row(), target = args.targets.read(row);
  const bool ignored = target == args.targets.ignore_index;
  if (rows.team().is_first_thread()) args.targets.report_if_wrong(row, target);
  const C lse = args.lse.at<C>(row), dloss = args.dloss.at<C>(row),
          smoothing = static_cast<C>(args.smoothing);
  const RowGradient<T, lanes> gradient{{args.targets, target},
                                       lse,
                                       0,
                                       dloss,
                                       smoothing,
                                       smoothing / static_cast<C>(args.targets.count) * dloss};
  T* const dx = static_cast<T*>(args.dx) + row * args.targets.columns;
  rows.pass([&](auto each) {
    each([&](auto pack, int, const auto& x) {
      Wide<C, lanes> slope{};
      if (!ignored) slope = gradient.of(pack, x, [&](C own) { return std::expm1(own - lse); });
      write_pack<T, lanes>(dx, pack, slope, args.add);
    });
  });
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::SoftmaxCrossEntropyBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  if (out[0].shape().numel() == 0) return;
  const DType dtype = out[0].dtype(), wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto as_wide = [&](const Array& a) { return a.dtype() == wide ? a : dense(cuda, a, wide); };
  const RowArray x = rows_of(cuda, in[1], dtype);
  const Array dloss = as_wide(in[0]), lse = as_wide(in[3]);
  Destination dx(cuda, out[0], accumulates(mask, 0));
  const int lanes = row_lanes(dtype, x.length, {x.place(), {dx.array().data(), x.length}});
  const RowPlan plan(call, dtype, x.count, x.length, lanes);
  const GradientArgs args{
      {plan.shape(), {x.place()}},
      Targets(call, in[2], op.ignore_index, op::classes_of(x.length, op.classes), x.length),
      Strided(dloss),
      Strided(lse),
      dx.array().data(),
      op.label_smoothing,
      dx.add()};
  visit_floating(dtype, [&]<class T>() {
    const auto kernel =
        lanes > 1 ? cross_entropy_backward_kernel<T, pack_lanes<T>> : cross_entropy_backward_kernel<T, 1>;
    plan.launch(kernel, args);
  });
  dx.commit();
  call.finish();
}

}  // namespace ferrite
