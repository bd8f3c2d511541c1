// The gradient of an activation in 16 bits, with the column sums that are the gradient of the bias.
#include "ferrite/ops/activation_backward.hpp"

#include "backend_cuda/kit/column_sums.cuh"
#include "backend_cuda/kit/functions.cuh"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

using namespace cuda;

namespace {

template <class T, UnaryFn fn>
struct Gradients {
  static constexpr int lanes = column_sums::lanes;
  struct Loaded {
    Pack<T, lanes> saved, dy;
  };
  const T *saved, *dy;
  T* d;
  float alpha;

  __device__ Loaded load(std::int64_t at) const {
    return {load_pack<lanes>(saved + at), load_pack<lanes>(dy + at)};
  }
  __device__ void take(const Loaded& in, std::int64_t at, float (&sums)[lanes]) const {
    Pack<T, lanes> result;
#pragma unroll
    for (int v = 0; v < lanes; ++v) {
      const float value = formulas::backward(CoarseMath{}, fn, convert_to<float>(in.saved.lane[v]),
                                             convert_to<float>(in.dy.lane[v]), alpha);
      sums[v] += value;
      result.lane[v] = convert_to<T>(value);
    }
    store_pack<lanes>(d + at, result);
  }
};

/// The activations that it is compiled for.
constexpr bool has_kernel(UnaryFn fn) {
  return fn == UnaryFn::relu || fn == UnaryFn::gelu_tanh || fn == UnaryFn::silu;
}

/// f.template operator()<fn>() for one of them.
template <class F>
void visit_activation(UnaryFn fn, F&& f) {
  if (fn == UnaryFn::relu) return f.template operator()<UnaryFn::relu>();
  if (fn == UnaryFn::silu) return f.template operator()<UnaryFn::silu>();
  f.template operator()<UnaryFn::gelu_tanh>();
}

}  // namespace

bool accepts(const Cuda&, const op::ActivationBackward& op, MetaSpan in) {
  return size_of(in[0].dtype) == 2 && is_floating(in[0].dtype) && in[1].dtype == in[0].dtype &&
         in[0].shape[1] % column_sums::lanes == 0 && has_kernel(op.fn);
}

void run(Cuda& cuda, const op::ActivationBackward& op, Ins in, Outs out) {
  const std::int64_t rows = in[0].shape()[0], columns = in[0].shape()[1];
  const Call call(cuda, op_name(op));
  Destination d(cuda, out[0], false), sums(cuda, out[1], false);
  // Packs are read and written with one access.
  const auto in_packs = [&](const Array& x) {
    const Array elements = dense(cuda, x);
    if (is_aligned(elements.data(), 16)) return elements;
    const Array copy = cuda.allocate(x.meta());
    copy_into(cuda, x, copy);
    return copy;
  };
  const Array target = is_aligned(d.array().data(), 16) ? d.array() : cuda.allocate(out[0].meta());
  if (rows == 0) {
    Array empty = sums.array();
    run(cuda, op::Fill{empty.shape(), empty.dtype(), 0}, Ins(nullptr, 0), Outs(&empty, 1));
  } else if (columns > 0) {
    const Array saved = in_packs(in[0]), dy = in_packs(in[1]);
    visit_activation(op.fn, [&]<UnaryFn fn>() {
      visit_floating(saved.dtype(), [&]<class T>() {
        if constexpr (is_16_bit<T>)
          sum_columns(
              call,
              Gradients<T, fn>{saved.data<T>(), dy.data<T>(), target.data<T>(), static_cast<float>(op.alpha)},
              rows, columns, sums.array(), false);
      });
    });
  }
  if (target.buffer() != d.array().buffer()) copy_into(cuda, target, d.array());
  d.commit();
  sums.commit();
  call.finish();
}

}  // namespace ferrite
