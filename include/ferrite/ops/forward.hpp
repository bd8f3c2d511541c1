// The ops that backends have kernels for, declared: a backend's header needs no more of them.
#pragma once

namespace ferrite {

namespace op {
struct Fill;
struct Iota;
struct Random;
struct Copy;
struct Unary;
struct UnaryBackward;
struct Binary;
struct Where;
struct Reduce;
struct ArgReduce;
struct Scan;
struct Matmul;
struct Gather;
struct Scatter;
struct ScatterAdd;
struct Linear;
struct Conv2d;
struct Conv2dInputGrad;
struct Conv2dWeightGrad;
struct Attention;
struct AttentionBackward;
struct Softmax;
struct SoftmaxBackward;
struct LogSoftmax;
struct LogSoftmaxBackward;
struct LayerNorm;
struct LayerNormBackward;
struct RmsNorm;
struct RmsNormBackward;
struct BatchNorm;
struct BatchNormBackward;
struct SoftmaxCrossEntropy;
struct SoftmaxCrossEntropyBackward;
struct SoftmaxCrossEntropyWithGradient;
struct MaxPool2d;
struct MaxPool2dBackward;
struct AvgPool2d;
struct AvgPool2dBackward;
struct Dropout;
struct Embedding;
struct EmbeddingBackward;
struct IndexSelect;
struct PointwiseLoss;
struct PointwiseLossBackward;
struct GlobalNorm;
struct Sgd;
struct Adam;
struct Statistic;
struct Sort;
struct OrderStatistics;
struct Bucketize;
struct Launch;
struct FormulaPrior;
struct PriorDatasets;
}  // namespace op

namespace kernel {
class Kernel;
struct Grid;
}  // namespace kernel

}  // namespace ferrite
