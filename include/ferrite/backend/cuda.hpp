// Cuda: the backend on NVIDIA GPUs. cuBLASLt for products, cuDNN for convolutions, CUB for sorting, kernels
// of our own for the rest. No CUDA header is needed to use it. In a build without CUDA the class is declared
// all the same and its constructor says what is missing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/time_span.hpp"
#include "ferrite/op.hpp"
#include "ferrite/ops/forward.hpp"

namespace ferrite {

namespace cuda {
class DeviceContext;
void restart_stopwatch() noexcept;
}  // namespace cuda

struct BackendFacts;
struct Ceilings;
class PendingTime;
template <class B>
class Stopwatch;

/// How f32 matrix products and convolutions are computed: with f32 products (default), or with the operands
/// rounded to tf32 (10 bits of mantissa), some five times faster.
enum class Float32Products : std::uint8_t { exact, tf32 };

/// A handle to one GPU: two objects of one index share stream, memory pool and plans, their tensors mix, and
/// any thread may use them. Ops return before the GPU has done them; host copies and synchronize() wait. What
/// a kernel finds wrong (an index out of range) is thrown by the next of these, and the process stays usable.
/// A kernel that itself fails (an address that is not there, a fault of the GPU) ends CUDA in the process:
/// the call that meets it and every later one throw a BackendError that says so, and other backends work on.
/// Kernels expect outputs of the shape and dtype the op infers. Elementwise outputs may be the buffer and
/// layout of an input, and some ops say more; any other overlap of an output with an input is undefined.
/// Every op gives the same bits on every run for as long as the measured choices stay (docs/cuda.md).
class FERRITE_API Cuda {
 public:
  using Primitive = Array;
  using Handle = Cuda;

  /// Throws DeviceError where there is no such GPU, no driver, or no CUDA in this build: the message says
  /// which.
  explicit Cuda(int device = 0);
  /// For questions about what the backend has (accepts, Runs) on a machine without a GPU; anything else is
  /// undefined.
  static Cuda without_device() { return Cuda(nullptr); }
  /// Of one GPU.
  friend bool operator==(const Cuda& a, const Cuda& b) { return a.context_ == b.context_; }

  Array allocate(const Meta& meta);
  /// The same for an op: its name stands in memory reports and in OutOfMemory. Names are literals.
  Array allocate(const Meta& meta, std::string_view op);
  /// Between an array of any layout and dense row-major bytes of the host.
  void copy_from_host(const Array& array, const void* source);
  void copy_to_host(const Array& array, void* target);
  /// A copy of an array of another GPU, on this one.
  Array copy_from_device(const Array& array);
  void synchronize();
  Device device() const { return {DeviceKind::cuda, index_}; }
  MemoryStats memory_stats() const;
  /// Who holds how much: a table, or JSON.
  std::string memory_report() const;
  std::string memory_report_json() const;
  /// At most this many bytes are taken from the GPU from now on; OutOfMemory beyond.
  void set_memory_limit(std::size_t bytes);
  /// Gives cached memory back to the GPU.
  void release_cache();
  /// "cuda:0 (NVIDIA H200)"
  std::string describe() const;

  Float32Products float32_products() const { return *products_; }
  /// Of this object and its copies, which its tensors hold. An op of several tensors goes by the first.
  void set_float32_products(Float32Products products) { *products_ = products; }

  /// What is wrong with the file in which measured choices are kept (docs/cuda.md), oldest first.
  std::vector<std::string> warnings() const;
  /// Copy bandwidth and bf16 product rate of this GPU, measured at the first call; 0 if there is no memory
  /// (2 GiB) to measure with.
  Ceilings ceilings() const;
  /// This GPU, its pool, and the time the process has spent on loading libraries and choosing plans, for the
  /// reports of Profiled.
  BackendFacts facts() const;

  /// For the library's own kernels.
  cuda::DeviceContext& context() const { return *context_; }

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

  // Fused: linear, convolution, attention.
  void run(const op::Linear& op, Ins in, Outs out);
  void run(const op::Conv2d& op, Ins in, Outs out);
  void run(const op::Conv2dInputGrad& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
  void run(const op::Conv2dWeightGrad& op, Ins in, Outs out, Accumulate mask = Accumulate::none);
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
  void run(const op::OrderStatistics& op, Ins in, Outs out);
  void run(const op::Bucketize& op, Ins in, Outs out);
  // Synthetic datasets (models/priors), one dataset at a time in each block; the bits of the Cpu.
  void run(const op::FormulaPrior& op, Ins in, Outs out);
  void run(const op::PriorDatasets& op, Ins in, Outs out);

  /// Kernels of the user: compiled by NVRTC at the first launch, or from the cache on disk; the threads of a
  /// block and the elements of a thread are measured (docs/kernels.md). Inside a capture a kernel must have
  /// been launched or prepared before (BackendError).
  void run(const op::Launch& op, Ins in, Outs out);
  /// The same with a pointer to each argument, as emitted code takes them (kernel/emit.hpp): arrays are in
  /// the memory of this GPU.
  void launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments);
  /// Compiles and loads a kernel, and with it all that came from the same Kernel::all().
  void prepare(const kernel::Kernel& kernel, int block_dim = 256);

 private:
  explicit Cuda(cuda::DeviceContext* context) : index_(0), context_(context) {}

  int index_;
  std::shared_ptr<std::atomic<Float32Products>> products_ =
      std::make_shared<std::atomic<Float32Products>>(Float32Products::exact);
  cuda::DeviceContext* context_;
};

// What the kernels take (backend/concept.hpp).
FERRITE_API bool accepts(const Cuda&, const op::Linear&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Conv2d&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Conv2dInputGrad&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Conv2dWeightGrad&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Attention&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::AttentionBackward&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::MaxPool2dBackward&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Sort&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::OrderStatistics&, MetaSpan in);
FERRITE_API bool accepts(const Cuda&, const op::Bucketize&, MetaSpan in);

/// Times with device events what runs on the GPU between construction and stop. What Profiled<Cuda> measures
/// with. Where the GPU waits for the host, that is part of the time; choosing plans is not. Those of one
/// thread are destroyed in the reverse order of their construction.
template <>
class FERRITE_API Stopwatch<Cuda> {
 public:
  explicit Stopwatch(Cuda& cuda);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Waits for what it timed. BackendError inside a capture, where nothing runs.
  TimeSpan stop();
  /// Waits for nothing. nullptr inside a capture.
  std::unique_ptr<PendingTime> stop_later();

 private:
  friend void cuda::restart_stopwatch() noexcept;

  cuda::DeviceContext& context_;
  void* begin_ = nullptr;  // an event; none inside a capture
  Stopwatch* outer_;       // of this thread
};

}  // namespace ferrite
