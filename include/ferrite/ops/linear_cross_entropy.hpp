// linear_cross_entropy: the last layer of a classifier and its loss in one op. The logits, the largest tensor
// of a language model, exist only for some rows at a time, and their gradient takes their place.
#pragma once

#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/op.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite {
namespace op {

/// # Shapes: x [N, C], weight [V, C], targets integer [N] -> [] (f32; f64 if x or weight is f64)
/// The cross_entropy_loss of the logits x weight^T. If it is recorded for a backward pass, it has two more
/// outputs: the gradient of x, in the dtype of x, and that of weight, in the dtype of the loss. Its vjp then
/// has nothing left to compute. (For an f16 x the gradient is f32: in f16 it would underflow before a loss
/// scale could raise it.)
struct FERRITE_API LinearCrossEntropy {
  static constexpr LibraryName type_name = "linear_cross_entropy";
  static constexpr Positions lowered = {0, 1};
  static constexpr bool composes_as_given = true;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  bool mean = true;
  std::int64_t classes = 0;     // classes_of: the rows of weight that are not padding
  std::int64_t chunk_rows = 0;  // how many rows have logits at a time; 0: as the backend likes it
  bool with_gradient = false;

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) {
    chunk_rows = 2;
    with_gradient = true;
    return {{{3, 4}, d}, {{5, 4}, d}, detail::ids({3})};
  }
  static void attributes(auto& self, auto&& visit) {
    visit("ignore_index", self.ignore_index);
    visit("label_smoothing", self.label_smoothing);
    visit("mean", self.mean);
    visit("classes", self.classes);
    visit("chunk_rows", self.chunk_rows);
    visit("with_gradient", self.with_gradient);
  }
  template <class B>
  Tensors<B> compose(B& b, TensorSpan<B> in) const {
    const DType wide = wide_dtype(promote(in[0].dtype(), in[1].dtype()));
    const Tensor<B> x = cast(in[0], wide), weight = cast(in[1], wide);
    const Tensor<B>& targets = in[2];
    const Tensor<B> logits = eval(Matmul{wide}, x, transpose(weight, 0, 1));
    const Tensor<B> counted = mean ? cast(sum(targets != ignore_index), wide) : full(b, {}, 1, wide);
    if (!with_gradient) return {sum(eval(loss_of_rows(), logits, targets)) / counted};
    const Tensors<B> both = eval_all(gradient_of_rows(), logits, targets, reciprocal(counted));
    return {sum(both[0]) / counted, eval(Matmul{wide}, both[1], weight),
            eval(Matmul{wide}, transpose(both[1], 0, 1), x)};
  }
  LinearCrossEntropy recorded() const {
    LinearCrossEntropy op = *this;
    op.with_gradient = true;
    return op;
  }
  Saves saves() const { return {.outputs = {1, 2}}; }  // the gradients
  template <class B>
  void vjp(Vjp<B>& v) const {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      if (v.needs(i)) v.add(i, v.grad_is_one() ? v.output(i + 1) : v.output(i + 1) * v.grad());
  }

  // The parts that kernels are made of.
  SoftmaxCrossEntropy loss_of_rows() const { return {ignore_index, label_smoothing, classes}; }
  SoftmaxCrossEntropyWithGradient gradient_of_rows() const {
    return {ignore_index, label_smoothing, classes};
  }
  /// The rows of a chunk: chunk_rows, or as many as keep `row_bytes` each within `most_bytes`, in chunks of
  /// one size.
  std::int64_t rows_at_once(std::int64_t rows, std::int64_t row_bytes, std::int64_t most_bytes) const;
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::LinearCrossEntropy& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::LinearCrossEntropy& op, Ins in, Outs out);

/// # Shapes: x [..., C], weight [V, C], targets integer [...] -> [] (mean over targets that are not ignored,
/// or sum), or [...] without reduction.
/// softmax_cross_entropy(linear(x, weight), targets, config), without the memory for all logits (unless each
/// row's loss is wanted: no reduction).
template <class B>
Tensor<B> linear_cross_entropy(const Tensor<B>& x, const Tensor<B>& weight, const Tensor<B>& targets,
                               CrossEntropyConfig config = {}) {
  if (x.rank() < 1 || weight.rank() != 2 || x.size(-1) != weight.size(1))
    throw ShapeError("[linear_cross_entropy] x " + to_string(x.shape()) + " and weight " +
                     to_string(weight.shape()) +
                     ": the weight must be [classes, in] with `in` equal to x's last extent");
  Shape expected = x.shape();
  expected.erase(x.rank() - 1);
  if (!(targets.shape() == expected))
    throw ShapeError("[linear_cross_entropy] x " + to_string(x.shape()) + " and targets " +
                     to_string(targets.shape()) + ": the targets need " + to_string(expected) +
                     ", x's shape without its last axis");
  detail::check_weight_decides("linear_cross_entropy", "x", x.dtype(), weight.dtype());
  if (config.reduction == Reduction::none) return softmax_cross_entropy(linear(x, weight), targets, config);
  const op::LinearCrossEntropy loss{config.ignore_index, config.label_smoothing,
                                    config.reduction == Reduction::mean, config.classes};
  const std::int64_t rows = targets.numel();
  return eval(loss, reshape(x, {rows, x.size(-1)}), weight, reshape(targets, {rows}));
}

}  // namespace ferrite
