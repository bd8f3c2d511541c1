// The pointwise losses and their gradients, each one elementwise kernel.
#include <cmath>

#include "backend_cpu/kit/elementwise.hpp"
#include "backend_cpu/simd/simd.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/ops/pointwise_loss.hpp"

namespace ferrite {

using namespace cpu;

namespace {

using op::LossFn;
using simd::Vec;

/// log(1 + e) for e in [0, 1]: 2 atanh(e / (2 + e)), a minimax fit.
FERRITE_INLINE Vec<float> log_one_plus(Vec<float> e) {
  const Vec<float> s = e / (e + 2.0f), z = s * s;
  const Vec<float> tail = z * (z * (z * 0.1408916715f + 0.1398030144f) + 0.2001245514f) + 0.3333315734f;
  return (s + s) * (z * tail + 1.0f);
}
FERRITE_INLINE Vec<double> log_one_plus(Vec<double> e) {
  for (std::int64_t j = 0; j < simd::lanes<double>; ++j) e[j] = std::log1p(e[j]);
  return e;
}

template <LossFn fn, class V, class W>
FERRITE_INLINE V loss_of(V x, V t, W delta) {
  const V distance = simd::magnitude(x - t);
  if constexpr (fn == LossFn::mse) {
    return distance * distance;
  } else if constexpr (fn == LossFn::l1) {
    return distance;
  } else if constexpr (fn == LossFn::huber) {
    const V near = distance * distance * W(0.5), far = (distance - W(0.5) * delta) * delta;
    return distance <= delta ? near : far;
  } else {
    return simd::larger(V{}, x) - x * t + log_one_plus(simd::exp(-simd::magnitude(x)));
  }
}

template <LossFn fn, class V, class W>
FERRITE_INLINE V slope_of(V x, V t, W delta) {
  const V difference = x - t, one = V{} + W{1};
  if constexpr (fn == LossFn::mse) {
    return difference + difference;
  } else if constexpr (fn == LossFn::l1) {
    const V not_above = difference < 0 ? -one : difference;  // 0 and NaN stay
    return difference > 0 ? one : not_above;
  } else if constexpr (fn == LossFn::huber) {
    return simd::larger(V{} - delta, -simd::larger(V{} - delta, -difference));
  } else {
    const V e = simd::exp(-simd::magnitude(x));  // sigmoid without overflow
    return (x < 0 ? e : one) / (e + one) - t;
  }
}

template <LossFn fn, class W>
[[gnu::flatten]] void loss_kernel(const void* const* in, void* out, std::int64_t n, double delta) {
  const W *x = static_cast<const W*>(in[0]), *t = static_cast<const W*>(in[1]);
  simd::map(static_cast<W*>(out), n,
            [&](auto at) { return loss_of<fn>(at(x), at(t), static_cast<W>(delta)); });
}

template <LossFn fn, class W>
[[gnu::flatten]] void gradient_kernel(const void* const* in, void* out, std::int64_t n, double delta) {
  const W *x = static_cast<const W*>(in[0]), *t = static_cast<const W*>(in[1]),
          *d = static_cast<const W*>(in[2]);
  simd::map(static_cast<W*>(out), n,
            [&](auto at) { return at(d) * slope_of<fn>(at(x), at(t), static_cast<W>(delta)); });
}

/// Calls f.template operator()<fn>().
template <class F>
BlockKernel choose(LossFn fn, F&& f) {
  switch (fn) {
    case LossFn::mse:
      return f.template operator()<LossFn::mse>();
    case LossFn::l1:
      return f.template operator()<LossFn::l1>();
    case LossFn::huber:
      return f.template operator()<LossFn::huber>();
    default:
      return f.template operator()<LossFn::bce_with_logits>();
  }
}

/// Computes in f64 if any operand is f64, else in f32.
void run_loss(BlockKernel narrow, BlockKernel wide, double delta, Ins in, const Array& out, bool add) {
  bool is_wide = false;
  for (std::size_t k = 0; k < in.size(); ++k) is_wide = is_wide || in[k].dtype() == DType::f64;
  const DType dtype = is_wide ? DType::f64 : DType::f32;
  SmallVector<Source, 3> sources;
  for (std::size_t k = 0; k < in.size(); ++k) sources.push_back(Source{&in[k], nullptr, dtype});
  run_elementwise({is_wide ? wide : narrow, dtype, delta}, sources, out, add);
}

}  // namespace

void run(Cpu&, const op::PointwiseLoss& op, Ins in, Outs out) {
  run_loss(choose(op.fn, []<LossFn fn>() -> BlockKernel { return loss_kernel<fn, float>; }),
           choose(op.fn, []<LossFn fn>() -> BlockKernel { return loss_kernel<fn, double>; }), op.delta, in,
           out[0], false);
}

void run(Cpu&, const op::PointwiseLossBackward& op, Ins in, Outs out, Accumulate mask) {
  run_loss(choose(op.fn, []<LossFn fn>() -> BlockKernel { return gradient_kernel<fn, float>; }),
           choose(op.fn, []<LossFn fn>() -> BlockKernel { return gradient_kernel<fn, double>; }), op.delta,
           in, out[0], accumulates(mask, 0));
}

}  // namespace ferrite
