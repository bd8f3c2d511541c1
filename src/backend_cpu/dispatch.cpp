// run(Cpu&, op, ...) for a library with several instruction sets: calls the kernel of the chosen one. (Where
// there is one set, its kernels themselves have these names.) An op with a kernel on the CPU has a line here.
#include "backend_cpu/kernels.hpp"
#include "core/isa_table.hpp"
#include "ferrite/ops/all.hpp"

namespace ferrite {

namespace cpu {

FERRITE_CHOOSE_TABLE(backend_cpu, Kernels)

void convert_block(DType from, const void* source, DType to, void* target, std::int64_t n) {
  chosen_table().convert_block(from, source, to, target, n);
}
void fill_block(DType dtype, const void* value, void* target, std::int64_t n) {
  chosen_table().fill_block(dtype, value, target, n);
}
void add_block(DType dtype, const void* source, void* target, std::int64_t n) {
  chosen_table().add_block(dtype, source, target, n);
}

}  // namespace cpu

namespace {

template <class Op>
const OpKernels<Cpu>& kernel_of() {
  return cpu::chosen_table().ops[op::Core::index_of<Op>()];
}

}  // namespace

#define FERRITE_RUN(Op) \
  void run(Cpu& cpu, const op::Op& op, Ins in, Outs out) { kernel_of<op::Op>().run(cpu, &op, in, out); }
#define FERRITE_RUN_ADDING(Op)                                              \
  void run(Cpu& cpu, const op::Op& op, Ins in, Outs out, Accumulate mask) { \
    kernel_of<op::Op>().run_adding(cpu, &op, in, out, mask);                \
  }
#define FERRITE_ACCEPTS(Op)                                     \
  bool accepts(const Cpu& cpu, const op::Op& op, MetaSpan in) { \
    return kernel_of<op::Op>().accepts(cpu, &op, in);           \
  }

FERRITE_RUN(Adam)
FERRITE_RUN(ArgReduce)
FERRITE_RUN(Attention)
FERRITE_RUN(AvgPool2d)
FERRITE_RUN(BatchNorm)
FERRITE_RUN(Bucketize)
FERRITE_RUN(Cholesky)
FERRITE_RUN(Conv2d)
FERRITE_RUN(Eigh)
FERRITE_RUN(Embedding)
FERRITE_RUN(Fill)
FERRITE_RUN(GatedActivation)
FERRITE_RUN(Gather)
FERRITE_RUN(GlobalNorm)
FERRITE_RUN(IndexSelect)
FERRITE_RUN(Iota)
FERRITE_RUN(LayerNorm)
FERRITE_RUN(Linear)
FERRITE_RUN(LinearCrossEntropy)
FERRITE_RUN(LogSoftmax)
FERRITE_RUN(Lu)
FERRITE_RUN(MaxPool2d)
FERRITE_RUN(OrderStatistics)
FERRITE_RUN(PointwiseLoss)
FERRITE_RUN(Qr)
FERRITE_RUN(QuantizedLinear)
FERRITE_RUN(Random)
FERRITE_RUN(RmsNorm)
FERRITE_RUN(Scan)
FERRITE_RUN(Scatter)
FERRITE_RUN(ScatterAdd)
FERRITE_RUN(SelfAttention)
FERRITE_RUN(Sgd)
FERRITE_RUN(Softmax)
FERRITE_RUN(SoftmaxCrossEntropy)
FERRITE_RUN(SoftmaxCrossEntropyWithGradient)
FERRITE_RUN(Solve)
FERRITE_RUN(Sort)
FERRITE_RUN(Statistic)
FERRITE_RUN(Svd)
FERRITE_RUN(TriangularSolve)

FERRITE_RUN_ADDING(AttentionBackward)
FERRITE_RUN_ADDING(AvgPool2dBackward)
FERRITE_RUN_ADDING(BatchNormBackward)
FERRITE_RUN_ADDING(Binary)
FERRITE_RUN_ADDING(Conv2dInputGrad)
FERRITE_RUN_ADDING(Conv2dWeightGrad)
FERRITE_RUN_ADDING(Copy)
FERRITE_RUN_ADDING(Dropout)
FERRITE_RUN_ADDING(EmbeddingBackward)
FERRITE_RUN_ADDING(GatedActivationBackward)
FERRITE_RUN_ADDING(LayerNormBackward)
FERRITE_RUN_ADDING(LogSoftmaxBackward)
FERRITE_RUN_ADDING(Matmul)
FERRITE_RUN_ADDING(MaxPool2dBackward)
FERRITE_RUN_ADDING(PointwiseLossBackward)
FERRITE_RUN_ADDING(Reduce)
FERRITE_RUN_ADDING(RmsNormBackward)
FERRITE_RUN_ADDING(Rope)
FERRITE_RUN_ADDING(SelfAttentionBackward)
FERRITE_RUN_ADDING(SoftmaxBackward)
FERRITE_RUN_ADDING(SoftmaxCrossEntropyBackward)
FERRITE_RUN_ADDING(Unary)
FERRITE_RUN_ADDING(UnaryBackward)
FERRITE_RUN_ADDING(Where)

FERRITE_ACCEPTS(Attention)
FERRITE_ACCEPTS(AttentionBackward)
FERRITE_ACCEPTS(Bucketize)
FERRITE_ACCEPTS(Conv2d)
FERRITE_ACCEPTS(Conv2dInputGrad)
FERRITE_ACCEPTS(Conv2dWeightGrad)
FERRITE_ACCEPTS(GatedActivation)
FERRITE_ACCEPTS(GatedActivationBackward)
FERRITE_ACCEPTS(IndexSelect)
FERRITE_ACCEPTS(Linear)
FERRITE_ACCEPTS(OrderStatistics)
FERRITE_ACCEPTS(QuantizedLinear)
FERRITE_ACCEPTS(SelfAttention)
FERRITE_ACCEPTS(SelfAttentionBackward)

}  // namespace ferrite
