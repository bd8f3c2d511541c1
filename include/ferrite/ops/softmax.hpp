// softmax and log_softmax along one axis. f16 and bf16 accumulate in f32.
#pragma once

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/reduce.hpp"

namespace ferrite {
namespace op {

/// y = exp(x - max) / sum(exp(x - max)). A row of -inf gives NaN, as in PyTorch; an axis of extent 0 an empty
/// result.
struct FERRITE_API Softmax {
  static constexpr LibraryName type_name = "softmax";
  int axis = -1;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    if (in[0].numel() == 0) return {in[0]};
    const Tensor<B> e = exp(in[0] - max(in[0], {axis}, KeepDim::yes).detach());
    return {e / sum(e, {axis}, KeepDim::yes)};
  }
  Saves saves() const { return {.outputs = {0}}; }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx = y (dy - sum(y dy)). Inputs (y, dy).
struct FERRITE_API SoftmaxBackward {
  static constexpr LibraryName type_name = "softmax_backward";
  int axis = -1;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(2, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[0] * (in[1] - sum(in[0] * in[1], {axis}, KeepDim::yes))};
  }
};

/// y = x - logsumexp(x).
struct FERRITE_API LogSoftmax {
  static constexpr LibraryName type_name = "log_softmax";
  int axis = -1;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    if (in[0].numel() == 0) return {in[0]};
    const Tensor<B> shifted = in[0] - max(in[0], {axis}, KeepDim::yes).detach();
    return {shifted - log(sum(exp(shifted), {axis}, KeepDim::yes))};
  }
  Saves saves() const { return {.outputs = {0}}; }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dx = dy - exp(y) sum(dy). Inputs (y, dy).
struct FERRITE_API LogSoftmaxBackward {
  static constexpr LibraryName type_name = "log_softmax_backward";
  int axis = -1;

  Metas infer(MetaSpan in) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(2, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) { visit("axis", self.axis); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[1] - exp(in[0]) * sum(in[1], {axis}, KeepDim::yes)};
  }
};

template <class B>
void Softmax::vjp(Vjp<B>& v) const {
  v.into(0, SoftmaxBackward{axis}, v.output(0), v.grad());
}
template <class B>
void LogSoftmax::vjp(Vjp<B>& v) const {
  v.into(0, LogSoftmaxBackward{axis}, v.output(0), v.grad());
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Softmax& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::Softmax& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::SoftmaxBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::SoftmaxBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cpu&, const op::LogSoftmax& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::LogSoftmax& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::LogSoftmaxBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::LogSoftmaxBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

template <class B>
Tensor<B> softmax(const Tensor<B>& x, int axis = -1) {
  return eval(op::Softmax{axis}, x);
}
template <class B>
Tensor<B> log_softmax(const Tensor<B>& x, int axis = -1) {
  return eval(op::LogSoftmax{axis}, x);
}

}  // namespace ferrite
