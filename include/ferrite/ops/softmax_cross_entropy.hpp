// softmax_cross_entropy: the loss of classifiers, from logits and class ids. Accumulates in f32 (f64 for
// f64).
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "ferrite/core/config.hpp"
#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/pad.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite {
namespace op {

/// Throws ValueError for a target that is neither ignored nor in [0, classes); it names the first one.
FERRITE_API void check_targets(std::string_view op, std::span<const std::int64_t> targets,
                               std::int64_t classes, std::int64_t ignore_index);

/// How many of a row's columns are classes, by an attribute `classes`: all of them if it is 0. The others are
/// padding (50257 classes in 50304 columns make faster products): no part of the softmax, and their gradient
/// is 0.
constexpr std::int64_t classes_of(std::int64_t columns, std::int64_t classes) {
  return classes == 0 ? columns : classes;
}
/// Logits without their padding, and a gradient with zeros in its place.
template <class B>
Tensor<B> without_padding(const Tensor<B>& logits, std::int64_t classes) {
  return classes == 0 ? logits : slice(logits, 1, 0, classes);
}
template <class B>
Tensor<B> with_padding(const Tensor<B>& gradient, std::int64_t columns) {
  const std::int64_t padding = columns - gradient.size(1);
  return padding == 0 ? gradient : pad(gradient, Shape{0, 0}, Shape{0, padding});
}

/// # Shapes: logits [N, C], targets integer [N] -> loss [N], lse [N] (f32; f64 for f64 logits)
/// loss = lse - (1 - s) x[target] - s mean(x) with label smoothing s; 0 where target == ignore_index. Any
/// other target that is not a class (classes_of) is a ValueError.
struct FERRITE_API SoftmaxCrossEntropy {
  static constexpr LibraryName type_name = "softmax_cross_entropy";
  static constexpr std::string_view later_attribute = "classes";
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::int64_t classes = 0;  // classes_of

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, detail::ids({2})}; }
  static void attributes(auto& self, auto&& visit) {
    visit("ignore_index", self.ignore_index);
    visit("label_smoothing", self.label_smoothing);
    visit("classes", self.classes);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B> x = without_padding(in[0], classes);
    check_targets(type_name, in[1].template to_vector<std::int64_t>(), x.size(1), ignore_index);
    const Tensor<B> ignored = in[1] == ignore_index;
    const Tensor<B> target = unsqueeze(where(ignored, 0, in[1]), 1);
    // Relative to the largest logit: near certainty lse and x[target] are almost equal, and their difference
    // would keep only the rounding errors of both.
    const Tensor<B> top = max(x, {-1}, KeepDim::yes);
    const Tensor<B> shift = where(isfinite(top), top, 0), z = x - shift;
    const Tensor<B> log_sum = log(sum(exp(z), {-1}));
    Tensor<B> loss = log_sum - squeeze(gather(z, 1, target), {1}) * (1 - label_smoothing);
    if (label_smoothing != 0) loss = loss - mean(z, {-1}) * label_smoothing;
    return {where(ignored, 0, loss), log_sum + squeeze(shift, {1})};
  }
  Saves saves() const { return {.inputs = {0, 1}, .outputs = {1}}; }  // logits, targets; lse
  template <class B>
  void vjp(Vjp<B>& v) const;
};

/// dlogits = dloss (softmax - target distribution). Inputs (dloss [N], logits, targets, lse).
struct FERRITE_API SoftmaxCrossEntropyBackward {
  static constexpr LibraryName type_name = "softmax_cross_entropy_backward";
  static constexpr std::string_view later_attribute = "classes";
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::int64_t classes = 0;  // classes_of

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const {
    return {detail::statistics({2}, d), {{2, 3}, d}, detail::ids({2}), detail::statistics({2}, d)};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("ignore_index", self.ignore_index);
    visit("label_smoothing", self.label_smoothing);
    visit("classes", self.classes);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>&dloss = in[0], &targets = in[2], &lse = in[3];
    const Tensor<B> logits = without_padding(in[1], classes);
    const std::int64_t count = logits.size(1);
    check_targets(type_name, targets.template to_vector<std::int64_t>(), count, ignore_index);
    const Tensor<B> log_p = logits - unsqueeze(lse, 1);
    // p - 1 as expm1: near certainty the difference of the two would keep only rounding errors.
    const Tensor<B> error =
        where(one_hot(targets, count, lse.dtype()) != 0, expm1(log_p) + label_smoothing, exp(log_p));
    const Tensor<B> scale = where(targets == ignore_index, 0, dloss);
    const Tensor<B> gradient = (error - label_smoothing / static_cast<double>(count)) * unsqueeze(scale, 1);
    return {with_padding(gradient, in[1].size(1))};
  }
};

template <class B>
void SoftmaxCrossEntropy::vjp(Vjp<B>& v) const {
  v.into(0, SoftmaxCrossEntropyBackward{ignore_index, label_smoothing, classes}, v.grad(), v.input(0),
         v.input(1), v.output(1));
}

/// The same losses, and d(scale sum(loss)) / dlogits while everything for the gradient is at hand: the logits
/// are read once instead of twice. Inputs (logits, targets, scale []) -> loss [N], dlogits [N, C]. dlogits
/// may be the buffer of the logits.
struct FERRITE_API SoftmaxCrossEntropyWithGradient {
  static constexpr LibraryName type_name = "softmax_cross_entropy_with_gradient";
  static constexpr std::string_view later_attribute = "classes";
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  std::int64_t classes = 0;  // classes_of

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, detail::ids({2}), detail::statistics({}, d)}; }
  static void attributes(auto& self, auto&& visit) {
    visit("ignore_index", self.ignore_index);
    visit("label_smoothing", self.label_smoothing);
    visit("classes", self.classes);
  }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    const Tensor<B>& targets = in[1];
    const Tensor<B> logits = without_padding(in[0], classes);
    const std::int64_t count = logits.size(1);
    check_targets(type_name, targets.template to_vector<std::int64_t>(), count, ignore_index);
    const Tensor<B> ignored = targets == ignore_index;
    const Tensor<B> top = max(logits, {1}, KeepDim::yes), z = logits - where(isfinite(top), top, 0);
    // The target is kept apart from the others: near certainty its part of the sum is close to 1, and the
    // others, which are then all that matters, would be lost beside it.
    const Tensor<B> is_target = one_hot(targets, count, logits.dtype()) != 0;
    const Tensor<B> chosen = squeeze(gather(z, 1, unsqueeze(where(ignored, 0, targets), 1)), {1}),
                    own = exp(chosen);
    const Tensor<B> others = sum(where(is_target, 0, exp(z)), {1}), all = others + own, log_sum = log(all);
    Tensor<B> loss = where(own > others, log1p(others / own), log_sum - chosen);
    if (label_smoothing != 0) loss = loss + (log_sum - mean(z, {1}) - loss) * label_smoothing;
    const Tensor<B> error =
        where(is_target, unsqueeze(label_smoothing - others / all, 1), exp(z - unsqueeze(log_sum, 1)));
    const Tensor<B> scale = where(ignored, 0, in[2]);
    const Tensor<B> gradient = (error - label_smoothing / static_cast<double>(count)) * unsqueeze(scale, 1);
    return {where(ignored, 0, loss), with_padding(where(unsqueeze(ignored, 1), 0, gradient), in[0].size(1))};
  }
};

/// # Shapes: logits [N, C], targets integer [N] -> [] (f32; f64 for f64 logits)
/// The sum of the losses or, with `mean`, that sum divided by the number of targets that are not ignored. If
/// it is recorded for a backward pass, the gradient is computed along with it; a backward pass that starts at
/// this loss then has nothing left to do.
struct FERRITE_API CrossEntropyLoss {
  static constexpr LibraryName type_name = "cross_entropy_loss";
  static constexpr std::string_view later_attribute = "classes";
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool mean = true;
  std::int64_t classes = 0;    // classes_of
  bool with_gradient = false;  // a second output: d loss / dlogits
  static constexpr bool composes_as_given = true;

  /// The name of the function that users call; it covers both ops.
  std::string_view name() const { return SoftmaxCrossEntropy::type_name; }
  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{2, 3}, d}, detail::ids({2})}; }
  static void attributes(auto& self, auto&& visit) {
    visit("ignore_index", self.ignore_index);
    visit("label_smoothing", self.label_smoothing);
    visit("mean", self.mean);
    visit("classes", self.classes);
    visit("with_gradient", self.with_gradient);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const DType wide = wide_dtype(in[0].dtype());
    const Tensor<B> counted = mean ? cast(sum(in[1] != ignore_index), wide) : full(b, {}, 1, wide);
    if (!with_gradient) return {sum(eval(loss_of_rows(), in[0], in[1])) / counted};
    const Tensors<B> both = eval_all(gradient_of_rows(), in[0], in[1], reciprocal(counted));
    return {sum(both[0]) / counted, both[1]};
  }
  CrossEntropyLoss recorded() const {
    CrossEntropyLoss op = *this;
    op.with_gradient = true;
    return op;
  }
  Saves saves() const { return {.outputs = {1}}; }  // the gradient of the loss
  template <class B>
  void vjp(Vjp<B>& v) const {
    if (v.grad_is_one())
      v.add(0, v.output(1));
    else
      v.add(0, v.output(1) * v.grad());
  }

  // The parts that kernels are made of.
  SoftmaxCrossEntropy loss_of_rows() const { return {ignore_index, label_smoothing, classes}; }
  SoftmaxCrossEntropyWithGradient gradient_of_rows() const {
    return {ignore_index, label_smoothing, classes};
  }
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::SoftmaxCrossEntropy& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::SoftmaxCrossEntropy& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::SoftmaxCrossEntropyBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cuda&, const op::SoftmaxCrossEntropyBackward& op, Ins in, Outs out,
                     Accumulate mask = Accumulate::none);
FERRITE_API void run(Cpu&, const op::SoftmaxCrossEntropyWithGradient& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::SoftmaxCrossEntropyWithGradient& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::CrossEntropyLoss& op, Ins in, Outs out);

/// The result of a loss per element: the losses themselves, their mean, or their sum.
enum class Reduction : std::uint8_t { none, mean, sum };

/// Rows whose target is ignore_index have no loss and do not count in the mean. Columns of the logits at and
/// beyond `classes` are padding (0: there is none).
struct CrossEntropyConfig {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Reduction reduction = Reduction::mean;
  std::int64_t classes = 0;
  CrossEntropyConfig with_ignore_index(std::int64_t value) const {
    return detail::with(*this, &CrossEntropyConfig::ignore_index, value);
  }
  CrossEntropyConfig with_label_smoothing(double value) const {
    return detail::with(*this, &CrossEntropyConfig::label_smoothing, value);
  }
  CrossEntropyConfig with_reduction(Reduction value) const {
    return detail::with(*this, &CrossEntropyConfig::reduction, value);
  }
  CrossEntropyConfig with_classes(std::int64_t value) const {
    return detail::with(*this, &CrossEntropyConfig::classes, value);
  }
};

/// # Shapes: logits [..., C], targets integer [...] -> [] (mean over targets that are not ignored, or sum),
/// or [...] without reduction.
template <class B>
Tensor<B> softmax_cross_entropy(const Tensor<B>& logits, const Tensor<B>& targets,
                                CrossEntropyConfig config = {}) {
  if (logits.rank() < 1)
    throw ShapeError("[softmax_cross_entropy] logits " + to_string(logits.shape()) +
                     ": needs [..., classes]");
  Shape expected = logits.shape();
  expected.erase(logits.rank() - 1);
  if (!(targets.shape() == expected))
    throw ShapeError("[softmax_cross_entropy] logits " + to_string(logits.shape()) + " and targets " +
                     to_string(targets.shape()) + ": the targets need " + to_string(expected) +
                     ", the logits' shape without the classes");
  const Tensor<B> rows = reshape(logits, {targets.numel(), logits.size(-1)});
  const Tensor<B> classes_of_rows = reshape(targets, {targets.numel()});
  if (config.reduction == Reduction::none)
    return reshape(eval(op::SoftmaxCrossEntropy{config.ignore_index, config.label_smoothing, config.classes},
                        rows, classes_of_rows),
                   targets.shape());
  const op::CrossEntropyLoss loss{config.ignore_index, config.label_smoothing,
                                  config.reduction == Reduction::mean, config.classes};
  // An f16 gradient would underflow if it were divided by the number of rows before a loss scale could raise
  // it.
  if (logits.dtype() == DType::f16)
    return loss.compose(logits.backend(), TensorSpan<B>(std::array{rows, classes_of_rows}))[0];
  return eval(loss, rows, classes_of_rows);
}

}  // namespace ferrite
