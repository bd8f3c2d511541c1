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

/// Vectors in the formulas.
template <class W>
struct VecMath {
  using V = Vec<W>;
  FERRITE_INLINE V operator()(double value) const { return V{} + static_cast<W>(value); }
  FERRITE_INLINE V let(V x) const { return x; }
  FERRITE_INLINE V select(auto condition, V a, V b) const { return condition ? a : b; }
  FERRITE_INLINE V abs(V x) const { return simd::magnitude(x); }
  FERRITE_INLINE V sign(V x) const {
    const V one = (*this)(1), not_above = x < 0 ? -one : x;  // 0 and NaN stay
    return x > 0 ? one : not_above;
  }
  FERRITE_INLINE V within(V x, W limit) const {
    return simd::larger(V{} - limit, -simd::larger(V{} - limit, -x));
  }
  FERRITE_INLINE V exp(V x) const { return simd::exp(x); }
  /// Of e in [0, 1]: 2 atanh(e / (2 + e)), a minimax fit.
  FERRITE_INLINE V log1p(V e) const {
    if constexpr (std::is_same_v<W, float>) {
      const V s = e / (e + 2.0f), z = s * s;
      const V tail = z * (z * (z * 0.1408916715f + 0.1398030144f) + 0.2001245514f) + 0.3333315734f;
      return (s + s) * (z * tail + 1.0f);
    } else {
      for (std::int64_t j = 0; j < simd::lanes<W>; ++j) e[j] = std::log1p(e[j]);
      return e;
    }
  }
};

template <LossFn fn, class W>
[[gnu::flatten]] void loss_kernel(const void* const* in, void* out, std::int64_t n, double delta) {
  const W *x = static_cast<const W*>(in[0]), *t = static_cast<const W*>(in[1]);
  simd::map(static_cast<W*>(out), n,
            [&](auto at) { return formulas::loss(VecMath<W>{}, fn, at(x), at(t), static_cast<W>(delta)); });
}

template <LossFn fn, class W>
[[gnu::flatten]] void gradient_kernel(const void* const* in, void* out, std::int64_t n, double delta) {
  const W *x = static_cast<const W*>(in[0]), *t = static_cast<const W*>(in[1]),
          *d = static_cast<const W*>(in[2]);
  simd::map(static_cast<W*>(out), n, [&](auto at) {
    return at(d) * formulas::loss_slope(VecMath<W>{}, fn, at(x), at(t), static_cast<W>(delta));
  });
}

template <class W>
constexpr BlockKernel loss_kernels[] = {loss_kernel<LossFn::mse, W>, loss_kernel<LossFn::l1, W>,
                                        loss_kernel<LossFn::huber, W>,
                                        loss_kernel<LossFn::bce_with_logits, W>};
template <class W>
constexpr BlockKernel gradient_kernels[] = {gradient_kernel<LossFn::mse, W>, gradient_kernel<LossFn::l1, W>,
                                            gradient_kernel<LossFn::huber, W>,
                                            gradient_kernel<LossFn::bce_with_logits, W>};

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
  const auto fn = static_cast<std::size_t>(op.fn);
  run_loss(loss_kernels<float>[fn], loss_kernels<double>[fn], op.delta, in, out[0], false);
}

void run(Cpu&, const op::PointwiseLossBackward& op, Ins in, Outs out, Accumulate mask) {
  const auto fn = static_cast<std::size_t>(op.fn);
  run_loss(gradient_kernels<float>[fn], gradient_kernels<double>[fn], op.delta, in, out[0],
           accumulates(mask, 0));
}

}  // namespace ferrite
