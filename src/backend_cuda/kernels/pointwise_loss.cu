// The pointwise losses and their gradients.
#include "backend_cuda/kit/functions.cuh"
#include "ferrite/ops/pointwise_loss.hpp"

namespace ferrite {
namespace cuda {
namespace {

using op::LossFn;

struct LossSet {
  template <class In, class>
  using Result = ComputeType<In>;
  template <LossFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double delta, In x, In t) {
    using C = ComputeType<In>;
    return formulas::loss(DeviceMath<C>{}, fn, convert_to<C>(x), convert_to<C>(t), static_cast<C>(delta));
  }
};

struct LossBackwardSet {
  template <class In, class, class>
  using Result = ComputeType<In>;
  template <LossFn fn, class In>
  __device__ __forceinline__ static auto evaluate(double delta, In x, In t, In d) {
    using C = ComputeType<In>;
    return convert_to<C>(d) * formulas::loss_slope(DeviceMath<C>{}, fn, convert_to<C>(x), convert_to<C>(t),
                                                   static_cast<C>(delta));
  }
};

using Losses = OneOf<LossSet, LossFn::mse, LossFn::bce_with_logits>;
using Gradients = OneOf<LossBackwardSet, LossFn::mse, LossFn::bce_with_logits>;

template <class Op>
void run_loss(const Call& call, const Op& op, Elementwise kernel, Ins in, const Array& out, bool add) {
  kernel.result = out.dtype();
  kernel.fn = static_cast<std::uint8_t>(op.fn);
  kernel.parameter = op.delta;
  Source sources[max_inputs];
  for (std::size_t k = 0; k < in.size(); ++k) sources[k] = {&in[k], out.dtype()};
  run_elementwise(call, kernel, std::span(sources, in.size()), out, add);
  call.finish();
}

/// Mixed operands are computed in f64 if any is f64.
bool any_is_f64(Ins in) {
  bool wide = false;
  for (std::size_t k = 0; k < in.size(); ++k) wide = wide || in[k].dtype() == DType::f64;
  return wide;
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::PointwiseLoss& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  Elementwise kernel;
  visit_floating(out[0].dtype(), [&]<class T>() {
    kernel.typed = {dense_kernel<Losses, T, T, T>, row_kernel<Losses, T, T, T>};
  });
  kernel.strided = any_is_f64(in) ? strided_kernel<Losses, double, 2> : strided_kernel<Losses, float, 2>;
  run_loss(call, op, kernel, in, out[0], false);
}

void run(Cuda& cuda, const op::PointwiseLossBackward& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  Elementwise kernel;
  visit_floating(out[0].dtype(), [&]<class T>() {
    kernel.typed = {dense_kernel<Gradients, T, T, T, T>, row_kernel<Gradients, T, T, T, T>};
  });
  kernel.strided =
      any_is_f64(in) ? strided_kernel<Gradients, double, 3> : strided_kernel<Gradients, float, 3>;
  run_loss(call, op, kernel, in, out[0], accumulates(mask, 0));
}

}  // namespace ferrite
