// A user-written op: mish(x) = x tanh(log(1 + exp(x))). One struct holds its shape rule, its composition and
// its gradient. That is enough to run it on every backend, differentiate, profile and compare it. The kernels
// are free functions beside it; they make one pass over memory where the composition makes three. ferrite
// itself is not changed.
#pragma once

#include <ferrite/ops/primitives.hpp>
#include <ferrite/tensor/tensor.hpp>

struct Mish {
  static constexpr std::string_view type_name = "mish";

  ferrite::Metas infer(ferrite::MetaSpan in) const {
    ferrite::detail::check_arity(type_name, in.size(), 1, 1);
    ferrite::detail::check_floating(type_name, "x", in[0].dtype);
    return {in[0]};
  }
  static void attributes(auto&, auto&&) {}

  template <class B>
  ferrite::Tensors<B> compose(B&, ferrite::TensorSpan<B> in) const {
    return {in[0] * tanh(softplus(in[0]))};
  }

  /// d/dx = tanh(s) + x (1 - tanh(s)^2) sigmoid(x) with s = log(1 + exp(x)); x is kept for it.
  ferrite::Saves saves() const { return {.inputs = {0}}; }
  template <class B>
  void vjp(ferrite::Vjp<B>& v) const {
    const ferrite::Tensor<B> x = v.input(0), t = tanh(softplus(x));
    v.add(0, v.grad() * (t + x * (1 - t * t) * sigmoid(x)));
  }
};

// Kernels, declared beside the op, so that every file that sees the op sees them.
void run(ferrite::Cpu& cpu, const Mish& op, ferrite::Ins in, ferrite::Outs out);
#if MISH_CUDA
void run(ferrite::Cuda& cuda, const Mish& op, ferrite::Ins in, ferrite::Outs out);
#endif

template <class B>
ferrite::Tensor<B> mish(const ferrite::Tensor<B>& x) {
  return eval(Mish{}, x);
}
