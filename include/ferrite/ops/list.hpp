// The list of ops. It is also the test list, the bench list, the capability table of `ferrite ops`, what a
// replay file may name, and what every backend stack is instantiated for. A new op is one more entry.
#pragma once

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/bucketize.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/order_statistics.hpp"
#include "ferrite/ops/pad.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/pool2d.hpp"
#include "ferrite/ops/primitives.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/ops/sort.hpp"
#include "ferrite/ops/statistic.hpp"
#include "ferrite/ops/triangle.hpp"
#include "ferrite/ops/views.hpp"

// Required of every backend.
#define FERRITE_PRIMITIVE_OPS(X) \
  X(Fill)                        \
  X(Iota)                        \
  X(Random)                      \
  X(Copy)                        \
  X(Unary)                       \
  X(Binary)                      \
  X(Where)                       \
  X(Reduce)                      \
  X(ArgReduce)                   \
  X(Scan)                        \
  X(Matmul)                      \
  X(Gather)                      \
  X(Scatter)                     \
  X(ScatterAdd)

// Metadata only; no backend runs them.
#define FERRITE_VIEW_OPS(X) \
  X(Reshape)                \
  X(Permute)                \
  X(Slice)                  \
  X(Expand)                 \
  X(Windows)

// Made of the primitives unless a backend has a kernel.
#define FERRITE_COMPOSITE_OPS(X)     \
  X(Fold)                            \
  X(Pad)                             \
  X(Cat)                             \
  X(Sort)                            \
  X(OrderStatistics)                 \
  X(Bucketize)                       \
  X(UnaryBackward)                   \
  X(Statistic)                       \
  X(Triangle)                        \
  X(OneHot)                          \
  X(IndexSelect)                     \
  X(Embedding)                       \
  X(EmbeddingBackward)               \
  X(Softmax)                         \
  X(SoftmaxBackward)                 \
  X(LogSoftmax)                      \
  X(LogSoftmaxBackward)              \
  X(LayerNorm)                       \
  X(LayerNormBackward)               \
  X(RmsNorm)                         \
  X(RmsNormBackward)                 \
  X(BatchNorm)                       \
  X(BatchNormBackward)               \
  X(Linear)                          \
  X(Attention)                       \
  X(AttentionBackward)               \
  X(SoftmaxCrossEntropy)             \
  X(SoftmaxCrossEntropyBackward)     \
  X(SoftmaxCrossEntropyWithGradient) \
  X(CrossEntropyLoss)                \
  X(Conv2d)                          \
  X(Conv2dInputGrad)                 \
  X(Conv2dWeightGrad)                \
  X(MaxPool2d)                       \
  X(MaxPool2dBackward)               \
  X(AvgPool2d)                       \
  X(AvgPool2dBackward)               \
  X(Dropout)                         \
  X(PointwiseLoss)                   \
  X(PointwiseLossBackward)           \
  X(GlobalNorm)                      \
  X(Sgd)                             \
  X(Adam)

#define FERRITE_ALL_OPS(X) FERRITE_PRIMITIVE_OPS(X) FERRITE_VIEW_OPS(X) FERRITE_COMPOSITE_OPS(X)

namespace ferrite {

/// Calls f.template operator()<Op>() for every op type.
template <class F>
void for_each_op(F&& f) {
#define FERRITE_VISIT_OP(Name) f.template operator()<op::Name>();
  FERRITE_ALL_OPS(FERRITE_VISIT_OP)
#undef FERRITE_VISIT_OP
}

}  // namespace ferrite
