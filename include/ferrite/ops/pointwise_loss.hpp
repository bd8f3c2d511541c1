// pointwise_loss: losses of prediction and target element by element: mse, l1, huber, bce_with_logits.
#pragma once

#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace op {

FERRITE_API std::string_view to_string(LossFn fn);
constexpr int count_of(LossFn) { return static_cast<int>(LossFn::bce_with_logits) + 1; }

/// # Shapes: prediction and target alike -> the loss of every element. `delta` is huber's bend.
struct FERRITE_API PointwiseLoss {
  static constexpr LibraryName type_name = "pointwise_loss";
  LossFn fn = LossFn::mse;
  double delta = 1;

  std::string_view name() const { return to_string(fn); }
  Metas infer(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(2, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("delta", self.delta);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {formulas::loss(TensorMath{}, fn, in[0], in[1], delta)};
  }
  Saves saves() const { return {.inputs = {0, 1}}; }
  /// Fused for the prediction; a target that needs a gradient is composed.
  bool has_vjp(Positions needed) const { return !needed.contains(1); }
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dprediction. Inputs (prediction, target, dloss).
struct FERRITE_API PointwiseLossBackward {
  static constexpr LibraryName type_name = "pointwise_loss_backward";
  LossFn fn = LossFn::mse;
  double delta = 1;

  std::string_view name() const;
  Metas infer(MetaSpan in) const;
  Metas example(DType d) const { return detail::alike(3, {2, 3}, d); }
  static void attributes(auto& self, auto&& visit) {
    visit("fn", self.fn);
    visit("delta", self.delta);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[2] * formulas::loss_slope(TensorMath{}, fn, in[0], in[1], delta)};
  }
};

template <class B>
void PointwiseLoss::vjp(Vjp<B>& v) const {
  v.into(0, PointwiseLossBackward{fn, delta}, v.input(0), v.input(1), v.grad());
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::PointwiseLoss& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::PointwiseLoss& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::PointwiseLossBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::PointwiseLossBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);

namespace detail {
/// `called`: the function, for messages.
template <class B>
Tensor<B> pointwise_loss(std::string_view called, const op::PointwiseLoss& op, const Tensor<B>& prediction,
                         const Tensor<B>& target, Reduction reduction) {
  return run_parts(called, [&] {
    const Tensor<B> loss = eval(op, prediction, target);
    if (reduction == Reduction::none) return loss;
    return reduction == Reduction::mean ? mean(loss) : sum(loss);
  });
}
}  // namespace detail

/// (prediction - target)^2. # Shapes: prediction and target of one shape -> [] or, without reduction, that
/// shape.
template <class B>
Tensor<B> mse_loss(const Tensor<B>& prediction, const Tensor<B>& target,
                   Reduction reduction = Reduction::mean) {
  return detail::pointwise_loss("mse_loss", {op::LossFn::mse}, prediction, target, reduction);
}
/// |prediction - target|.
template <class B>
Tensor<B> l1_loss(const Tensor<B>& prediction, const Tensor<B>& target,
                  Reduction reduction = Reduction::mean) {
  return detail::pointwise_loss("l1_loss", {op::LossFn::l1}, prediction, target, reduction);
}
/// Quadratic within delta of the target, linear beyond.
template <class B>
Tensor<B> huber_loss(const Tensor<B>& prediction, const Tensor<B>& target, double delta = 1,
                     Reduction reduction = Reduction::mean) {
  return detail::pointwise_loss("huber_loss", {op::LossFn::huber, delta}, prediction, target, reduction);
}
/// Targets are probabilities in [0, 1].
template <class B>
Tensor<B> bce_with_logits(const Tensor<B>& logits, const Tensor<B>& target,
                          Reduction reduction = Reduction::mean) {
  return detail::pointwise_loss("bce_with_logits", {op::LossFn::bce_with_logits}, logits, target, reduction);
}

}  // namespace ferrite
