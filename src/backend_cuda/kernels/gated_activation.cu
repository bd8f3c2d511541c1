// gated_activation and its gradient, each one pass over memory.
#include "ferrite/ops/gated_activation.hpp"

#include "backend_cuda/kit/functions.cuh"
#include "backend_cuda/kit/packs.cuh"

namespace ferrite {

using namespace cuda;

namespace {

template <class T>
using MathOf = std::conditional_t<is_16_bit<T>, CoarseMath, DeviceMath<Compute<T>>>;

template <class T>
struct ActivateArgs {
  const T *gate, *up;
  T* y;
  std::int64_t count;
};

template <class T>
struct DifferentiateArgs {
  const T *dy, *gate, *up;
  T *dgate, *dup;
  std::int64_t count;
  bool add_gate, add_up;
};

/// The pack of this thread; the last one may be cut off.
template <int lanes>
__device__ __forceinline__ std::int64_t first_of_thread() {
  return (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) * lanes;
}

template <UnaryFn fn, int lanes, class T>
__global__ void __launch_bounds__(block_threads)
    activate_kernel(const __grid_constant__ ActivateArgs<T> args) {
  wait_for_earlier_kernels();
  using C = Compute<T>;
  const std::int64_t at = first_of_thread<lanes>();
  if (at >= args.count) return;
  const auto gate = load_pack<lanes>(args.gate + at), up = load_pack<lanes>(args.up + at);
  Pack<T, lanes> y;
#pragma unroll
  for (int i = 0; i < lanes; ++i)
    y.lane[i] = convert_to<T>(formulas::unary(MathOf<T>{}, fn, convert_to<C>(gate.lane[i]), C{1}) *
                              convert_to<C>(up.lane[i]));
  store_pack<lanes>(args.y + at, y);
}

template <UnaryFn fn, int lanes, class T>
__global__ void __launch_bounds__(block_threads)
    differentiate_kernel(const __grid_constant__ DifferentiateArgs<T> args) {
  wait_for_earlier_kernels();
  using C = Compute<T>;
  const std::int64_t at = first_of_thread<lanes>();
  if (at >= args.count) return;
  const auto dy = load_pack<lanes>(args.dy + at), gate = load_pack<lanes>(args.gate + at),
             up = load_pack<lanes>(args.up + at);
  Pack<T, lanes> dgate, dup;
  if (args.add_gate) dgate = load_pack<lanes>(args.dgate + at);
  if (args.add_up) dup = load_pack<lanes>(args.dup + at);
#pragma unroll
  for (int i = 0; i < lanes; ++i) {
    const C d = convert_to<C>(dy.lane[i]), g = convert_to<C>(gate.lane[i]), u = convert_to<C>(up.lane[i]);
    C of_gate = formulas::backward(MathOf<T>{}, fn, g, d * u, C{1});
    C of_up = d * formulas::unary(MathOf<T>{}, fn, g, C{1});
    if (args.add_gate) of_gate += convert_to<C>(dgate.lane[i]);
    if (args.add_up) of_up += convert_to<C>(dup.lane[i]);
    dgate.lane[i] = convert_to<T>(of_gate);
    dup.lane[i] = convert_to<T>(of_up);
  }
  store_pack<lanes>(args.dgate + at, dgate);
  store_pack<lanes>(args.dup + at, dup);
}

bool has_kernel(Activation activation) {
  return activation == Activation::silu || activation == Activation::gelu;
}

/// f.template operator()<fn, lanes, T>(): packs of 16 bytes where they fit, else elements.
template <class F>
void visit_kernel(Activation activation, DType dtype, bool in_packs, F&& f) {
  visit_floating(dtype, [&]<class T>() {
    const auto with = [&]<int lanes>() {
      if (activation == Activation::silu)
        f.template operator()<UnaryFn::silu, lanes, T>();
      else
        f.template operator()<UnaryFn::gelu_tanh, lanes, T>();
    };
    if (in_packs)
      with.template operator()<pack_lanes<T>>();
    else
      with.template operator()<1>();
  });
}

/// Whether all of these consist of whole packs of 16 bytes.
bool are_packs(std::initializer_list<Array> arrays) {
  for (const Array& x : arrays)
    if (!is_aligned(x.data(), 16) || x.meta().bytes() % 16 != 0) return false;
  return true;
}

}  // namespace

bool accepts(const Cuda&, const op::GatedActivation& op, MetaSpan) { return has_kernel(op.activation); }

void run(Cuda& cuda, const op::GatedActivation& op, Ins in, Outs out) {
  const std::int64_t count = in[0].shape().numel();
  if (count == 0) return;
  const Call call(cuda, op_name(op));
  const Array gate = dense(cuda, in[0]), up = dense(cuda, in[1]);
  Destination y(cuda, out[0], false);
  visit_kernel(op.activation, gate.dtype(), are_packs({gate, up, y.array()}),
               [&]<UnaryFn fn, int lanes, class T>() {
                 const ActivateArgs<T> args{gate.data<T>(), up.data<T>(), y.array().data<T>(), count};
                 launch(call, activate_kernel<fn, lanes, T>, divide_up(count, block_threads * lanes), args,
                        Start::early);
               });
  y.commit();
  call.finish();
}

bool accepts(const Cuda&, const op::GatedActivationBackward& op, MetaSpan in) {
  return has_kernel(op.activation) && in[0].dtype == in[1].dtype;
}

void run(Cuda& cuda, const op::GatedActivationBackward& op, Ins in, Outs out, Accumulate mask) {
  const std::int64_t count = in[0].shape().numel();
  if (count == 0) return;
  const Call call(cuda, op_name(op));
  const Array dy = dense(cuda, in[0]), gate = dense(cuda, in[1]), up = dense(cuda, in[2]);
  Destination dgate(cuda, out[0], accumulates(mask, 0)), dup(cuda, out[1], accumulates(mask, 1));
  visit_kernel(op.activation, gate.dtype(), are_packs({dy, gate, up, dgate.array(), dup.array()}),
               [&]<UnaryFn fn, int lanes, class T>() {
                 const DifferentiateArgs<T> args{
                     dy.data<T>(),          gate.data<T>(), up.data<T>(), dgate.array().data<T>(),
                     dup.array().data<T>(), count,          dgate.add(),  dup.add()};
                 launch(call, differentiate_kernel<fn, lanes, T>, divide_up(count, block_threads * lanes),
                        args, Start::early);
               });
  dgate.commit();
  dup.commit();
  call.finish();
}

}  // namespace ferrite
