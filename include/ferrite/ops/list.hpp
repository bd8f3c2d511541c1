// The list of ops. Every backend stack is compiled for it, `ferrite ops` shows it, replay files may name its
// ops, and the conformance suite tests them. To add an op to the library, add a line here and its header to
// ops/all.hpp, and give it a LibraryName. Models and programs have their own lists.
#pragma once

#include "ferrite/ops/op_list.hpp"

namespace ferrite::op {

// clang-format off
using Core = OpList<
    // Primitives, required of every backend (ops/primitives.hpp).
    struct Fill,
    struct Iota,
    struct Random,
    struct Copy,
    struct Unary,
    struct Binary,
    struct Where,
    struct Reduce,
    struct ArgReduce,
    struct Scan,
    struct Matmul,
    struct Gather,
    struct Scatter,
    struct ScatterAdd,
    // Views: metadata only, no backend runs them.
    struct Reshape,
    struct Permute,
    struct Slice,
    struct Expand,
    struct Windows,
    // Made of the primitives unless a backend has a kernel.
    struct Fold,
    struct Pad,
    struct Cat,
    struct Sort,
    struct OrderStatistics,
    struct Bucketize,
    struct UnaryBackward,
    struct ActivationBackward,
    struct Statistic,
    struct Triangle,
    struct OneHot,
    struct IndexSelect,
    struct Embedding,
    struct EmbeddingBackward,
    struct Softmax,
    struct SoftmaxBackward,
    struct LogSoftmax,
    struct LogSoftmaxBackward,
    struct LayerNorm,
    struct LayerNormBackward,
    struct RmsNorm,
    struct RmsNormBackward,
    struct BatchNorm,
    struct BatchNormBackward,
    struct Linear,
    struct QuantizedLinear,
    struct Attention,
    struct AttentionBackward,
    struct SelfAttention,
    struct SelfAttentionBackward,
    struct CrossAttention,
    struct CrossAttentionBackward,
    struct CachedAttention,
    struct FusedLinear,
    struct NextToken,
    struct Rope,
    struct GatedActivation,
    struct GatedActivationBackward,
    struct SoftmaxCrossEntropy,
    struct SoftmaxCrossEntropyBackward,
    struct SoftmaxCrossEntropyWithGradient,
    struct CrossEntropyLoss,
    struct LinearCrossEntropy,
    struct Conv2d,
    struct Conv2dInputGrad,
    struct Conv2dWeightGrad,
    struct MaxPool2d,
    struct MaxPool2dBackward,
    struct AvgPool2d,
    struct AvgPool2dBackward,
    struct Dropout,
    struct PointwiseLoss,
    struct PointwiseLossBackward,
    struct GlobalNorm,
    struct Sgd,
    struct Adam,
    // Linear algebra: defined by loops on the host.
    struct TriangularSolve,
    struct Cholesky,
    struct Lu,
    struct Solve,
    struct SolveFactored,
    struct Qr,
    struct Eigh,
    struct Svd,
    // User kernels: no composition, every backend runs them.
    struct Launch>;
// clang-format on

}  // namespace ferrite::op
