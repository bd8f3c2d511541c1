// Cpu: the fast backend on host memory. Vector code compiled for one instruction set, one thread
// pool (FERRITE_NUM_THREADS). Results do not depend on the number of threads: work is cut into chunks by the
// layouts alone.
#pragma once

#include <string>
#include <string_view>

#include "ferrite/op.hpp"
#include "ferrite/ops/forward.hpp"

namespace ferrite {

/// Holds no state of its own: two objects share the allocator and the thread pool, and any thread may use
/// them. Kernels expect outputs of the shape and dtype the op infers. Elementwise outputs may be the buffer
/// and layout of an input; any other overlap of an output with an input is undefined.
class FERRITE_API Cpu {
 public:
  using Primitive = Array;

  Array allocate(const Meta& meta) { return allocate(meta, "allocate"); }
  /// The same for an op: OutOfMemory names it.
  Array allocate(const Meta& meta, std::string_view op);
  /// Between an array of any layout and dense row-major bytes.
  void copy_from_host(const Array& array, const void* source);
  void copy_to_host(const Array& array, void* target);
  void synchronize() {}
  Device device() const { return {}; }
  MemoryStats memory_stats() const;
  /// "cpu (AVX-512, 2 threads)"
  std::string describe() const;

  // Primitives. Those with a mask add to outputs whose bit is set; bool results cannot be added
  // (BackendError).
  void run(const op::Fill& op, Ins in, Outs out);
  void run(const op::Iota& op, Ins in, Outs out);
  void run(const op::Random& op, Ins in, Outs out);
  void run(const op::Copy& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Unary& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::UnaryBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Binary& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Where& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  /// Accumulates sums only; another function with a mask is a BackendError.
  void run(const op::Reduce& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::ArgReduce& op, Ins in, Outs out);
  void run(const op::Scan& op, Ins in, Outs out);
  void run(const op::Matmul& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Gather& op, Ins in, Outs out);
  void run(const op::Scatter& op, Ins in, Outs out);
  void run(const op::ScatterAdd& op, Ins in, Outs out);

  // Fused: linear, convolution, attention; of f32 and f64.
  void run(const op::Linear& op, Ins in, Outs out);
  void run(const op::Conv2d& op, Ins in, Outs out);
  void run(const op::Conv2dInputGrad& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Conv2dWeightGrad& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  /// No buffer of all scores: scratch is a few blocks per thread.
  void run(const op::Attention& op, Ins in, Outs out);
  void run(const op::AttentionBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);

  // Fused: softmax, norms, losses, pools, optimisers. Computed in f32 (f64 for f64), rounded once.
  void run(const op::Softmax& op, Ins in, Outs out);
  void run(const op::SoftmaxBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::LogSoftmax& op, Ins in, Outs out);
  void run(const op::LogSoftmaxBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::LayerNorm& op, Ins in, Outs out);
  void run(const op::LayerNormBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::RmsNorm& op, Ins in, Outs out);
  void run(const op::RmsNormBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::BatchNorm& op, Ins in, Outs out);
  void run(const op::BatchNormBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::SoftmaxCrossEntropy& op, Ins in, Outs out);
  void run(const op::SoftmaxCrossEntropyBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::SoftmaxCrossEntropyWithGradient& op, Ins in, Outs out);
  void run(const op::MaxPool2d& op, Ins in, Outs out);
  void run(const op::MaxPool2dBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::AvgPool2d& op, Ins in, Outs out);
  void run(const op::AvgPool2dBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Dropout& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Embedding& op, Ins in, Outs out);
  void run(const op::EmbeddingBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::IndexSelect& op, Ins in, Outs out);
  void run(const op::PointwiseLoss& op, Ins in, Outs out);
  void run(const op::PointwiseLossBackward& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::GlobalNorm& op, Ins in, Outs out);
  void run(const op::Sgd& op, Ins in, Outs out);
  void run(const op::Adam& op, Ins in, Outs out);
  void run(const op::Statistic& op, Ins in, Outs out);
  void run(const op::Sort& op, Ins in, Outs out);

  // Fused: the tokenizer's, of f32 and f64.
  void run(const op::OrderStatistics& op, Ins in, Outs out);
  void run(const op::Bucketize& op, Ins in, Outs out);
  /// Kernels of the user, by blocks of threads (kernel/block.hpp).
  void run(const op::Launch& op, Ins in, Outs out);
  /// The same with a pointer to each argument, as emitted code takes them (kernel/emit.hpp).
  void launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments);
  // Synthetic datasets (models/priors), one dataset at a time on each thread.
  void run(const op::FormulaPrior& op, Ins in, Outs out);
  void run(const op::PriorDatasets& op, Ins in, Outs out);
};

// What the fused kernels take (backend/concept.hpp): f32 and f64, and what else is said.
FERRITE_API bool accepts(const Cpu&, const op::Linear&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::Conv2d&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::Conv2dInputGrad&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::Conv2dWeightGrad&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::Attention&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::AttentionBackward&, MetaSpan in);
/// Runs of a few elements are left to gather.
FERRITE_API bool accepts(const Cpu&, const op::IndexSelect&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::OrderStatistics&, MetaSpan in);
FERRITE_API bool accepts(const Cpu&, const op::Bucketize&, MetaSpan in);

}  // namespace ferrite
