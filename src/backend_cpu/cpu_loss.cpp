// The pointwise losses and their gradients, each one elementwise kernel.
#include <algorithm>
#include <cmath>

#include "backend_cpu/blocks.hpp"
#include "backend_cpu/elementwise.hpp"
#include "backend_cpu/fast_math.hpp"
#include "backend_cpu/scalar_functions.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/ops/pointwise_loss.hpp"

namespace ferrite {

using namespace cpu;

namespace {

using op::LossFn;

// log(1 + e^-|x|) and sigmoid of f32 in vector code, of f64 by the C library.
FERRITE_INLINE float log_one_plus_exp(float x) { return fast::log1p(fast::exp(-std::fabs(x))); }
FERRITE_INLINE double log_one_plus_exp(double x) { return std::log1p(std::exp(-std::fabs(x))); }
FERRITE_INLINE float sigmoid(float x) { return fast::sigmoid(x); }
FERRITE_INLINE double sigmoid(double x) { return scalar::sigmoid(x); }

template <LossFn fn, class W>
FERRITE_INLINE W loss_of(W x, W t, W delta) {
  const W difference = x - t, distance = std::fabs(difference);
  if constexpr (fn == LossFn::mse) return difference * difference;
  if constexpr (fn == LossFn::l1) return distance;
  if constexpr (fn == LossFn::huber)
    return distance <= delta ? distance * distance * W(0.5) : (distance - W(0.5) * delta) * delta;
  if constexpr (fn == LossFn::bce_with_logits) return (x < 0 ? W{0} : x) - x * t + log_one_plus_exp(x);
}

template <LossFn fn, class W>
FERRITE_INLINE W slope_of(W x, W t, W delta) {
  const W difference = x - t;
  if constexpr (fn == LossFn::mse) return difference * 2;
  if constexpr (fn == LossFn::l1)
    return difference > 0 ? W{1} : difference < 0 ? W{-1} : difference;  // NaN stays NaN
  if constexpr (fn == LossFn::huber) {
    const W above = difference < -delta ? -delta : difference;
    return above > delta ? delta : above;
  }
  if constexpr (fn == LossFn::bce_with_logits) return sigmoid(x) - t;
}

// exp and log1p of doubles are calls.
template <LossFn fn, class W>
constexpr Loop loop_of =
    fn == LossFn::bce_with_logits && std::is_same_v<W, double> ? Loop::scalar : Loop::vector;

template <LossFn fn, class W>
void loss_kernel(const void* const* in, void* out, std::int64_t n, double delta) {
  const W *x = static_cast<const W*>(in[0]), *t = static_cast<const W*>(in[1]);
  W* y = static_cast<W*>(out);
  for_each_index<loop_of<fn, W>>(
      n, [=](std::int64_t i) { y[i] = loss_of<fn, W>(x[i], t[i], static_cast<W>(delta)); });
}

template <LossFn fn, class W>
void gradient_kernel(const void* const* in, void* out, std::int64_t n, double delta) {
  const W *x = static_cast<const W*>(in[0]), *t = static_cast<const W*>(in[1]), *d = static_cast<const W*>(in[2]);
  W* y = static_cast<W*>(out);
  for_each_index<loop_of<fn, W>>(
      n, [=](std::int64_t i) { y[i] = d[i] * slope_of<fn, W>(x[i], t[i], static_cast<W>(delta)); });
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

void Cpu::run(const op::PointwiseLoss& op, Ins in, Outs out) {
  run_loss(choose(op.fn, []<LossFn fn>() -> BlockKernel { return loss_kernel<fn, float>; }),
           choose(op.fn, []<LossFn fn>() -> BlockKernel { return loss_kernel<fn, double>; }), op.delta, in, out[0],
           false);
}

void Cpu::run(const op::PointwiseLossBackward& op, Ins in, Outs out, Accumulate mask) {
  run_loss(choose(op.fn, []<LossFn fn>() -> BlockKernel { return gradient_kernel<fn, float>; }),
           choose(op.fn, []<LossFn fn>() -> BlockKernel { return gradient_kernel<fn, double>; }), op.delta, in,
           out[0], accumulates(mask, 0));
}

}  // namespace ferrite
