// Cuda: the backend on NVIDIA GPUs. It uses cuBLASLt for products, cuDNN for convolutions, CUB for sorting,
// and its own kernels for the rest. No CUDA header is needed to use it. A build without CUDA still declares
// the class; its constructor then says what is missing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/time_span.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {

namespace kernel {
class Kernel;
struct Grid;
}  // namespace kernel

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

/// How sums that several blocks of a kernel share are made: in one order, with the same bits on every run
/// (default), or in whatever order the blocks finish, where that is faster (the gradients of attention).
enum class Determinism : std::uint8_t { same_bits, fastest };

/// A handle to one GPU: two objects of one index share stream, memory pool and plans, their tensors mix, and
/// any thread may use them. Ops return before the GPU has finished them; host copies and synchronize() wait.
/// If a kernel finds bad data (an index out of range), the next of these throws, and the process stays
/// usable. If a kernel itself fails (an invalid address, a fault of the GPU), CUDA is lost to the process:
/// the call that notices it and every later one throw a BackendError that says so. Other backends still work.
/// Kernels expect outputs of the shape and dtype that the op infers. An elementwise output may have the
/// buffer and layout of an input, and some ops allow more; any other overlap of an output with an input is
/// undefined. Unless set_determinism asks for speed, every op gives the same bits on every run as long as the
/// measured choices stay the same (docs/cuda.md).
class FERRITE_API Cuda {
 public:
  using Primitive = Array;
  using Handle = Cuda;

  /// Throws DeviceError if there is no such GPU, no driver, or no CUDA in this build; the message says which.
  explicit Cuda(int device = 0);
  /// To ask what the backend has (accepts, Runs) on a machine without a GPU; any other use is undefined.
  static Cuda without_device() { return Cuda(nullptr); }
  /// True for two objects of one GPU.
  friend bool operator==(const Cuda& a, const Cuda& b) { return a.context_ == b.context_; }

  Array allocate(const Meta& meta);
  /// The same for an op: its name appears in memory reports and in OutOfMemory. Names are literals.
  Array allocate(const Meta& meta, std::string_view op);
  /// Between an array of any layout and dense row-major bytes of the host.
  void copy_from_host(const Array& array, const void* source);
  void copy_to_host(const Array& array, void* target);
  /// A copy of an array of this or another GPU, on this one. Does not wait.
  Array copy_from_device(const Array& array);
  void synchronize();
  Device device() const { return {DeviceKind::cuda, index_}; }
  /// Work is being recorded for a CUDA graph, and does not run yet.
  bool is_capturing() const;
  MemoryStats memory_stats() const;
  /// Who holds how much: a table, or JSON.
  std::string memory_report() const;
  std::string memory_report_json() const;
  /// At most this many bytes are taken from the GPU from now on; OutOfMemory beyond.
  void set_memory_limit(std::size_t bytes);
  /// What set_memory_limit or FERRITE_CUDA_MEMORY_LIMIT allows; without either more than any GPU has.
  std::size_t memory_limit() const;
  /// Gives cached memory back to the GPU.
  void release_cache();
  /// "cuda:0 (NVIDIA H200)"
  std::string describe() const;

  Float32Products float32_products() const { return choices_->products; }
  /// Applies to this object and its copies, which its tensors hold. An op on several tensors follows the
  /// first.
  void set_float32_products(Float32Products products) { choices_->products = products; }

  Determinism determinism() const { return choices_->determinism; }
  /// Applies as set_float32_products does.
  void set_determinism(Determinism determinism) { choices_->determinism = determinism; }

  /// Problems with the file that keeps the measured choices (docs/cuda.md), oldest first.
  std::vector<std::string> warnings() const;
  /// Copy bandwidth and bf16 product rate of this GPU, measured at the first call; 0 if there is not enough
  /// memory (2 GiB) to measure.
  Ceilings ceilings() const;
  /// This GPU, its pool, and the time the process has spent on loading libraries and choosing plans, for the
  /// reports of Profiled.
  BackendFacts facts() const;

  /// For the library's own kernels.
  cuda::DeviceContext& context() const { return *context_; }

  /// A user's kernel, with a pointer to each argument as emitted code takes them (kernel/emit.hpp). Arrays
  /// are in the memory of this GPU.
  void launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments);
  /// Compiles and loads a kernel and all others from the same Kernel::all().
  void prepare(const kernel::Kernel& kernel, int block_dim = 256);

 private:
  explicit Cuda(cuda::DeviceContext* context) : index_(0), context_(context) {}

  int index_;
  struct Choices {
    std::atomic<Float32Products> products = Float32Products::exact;
    std::atomic<Determinism> determinism = Determinism::same_bits;
  };
  std::shared_ptr<Choices> choices_ = std::make_shared<Choices>();
  cuda::DeviceContext* context_;
};

/// Profiled<Cuda> measures with this: it uses device events to time what the GPU runs between construction
/// and stop. The time includes waits of the GPU for the host, but not choosing plans. The stopwatches of one
/// thread are destroyed in the reverse order of their construction.
template <>
class FERRITE_API Stopwatch<Cuda> {
 public:
  explicit Stopwatch(Cuda& cuda);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Waits for the timed work. BackendError inside a capture, where nothing runs.
  TimeSpan stop();
  /// Does not wait. nullptr inside a capture.
  std::unique_ptr<PendingTime> stop_later();

 private:
  friend void cuda::restart_stopwatch() noexcept;

  cuda::DeviceContext& context_;
  void* begin_ = nullptr;  // an event; none inside a capture
  Stopwatch* outer_;       // of this thread
};

}  // namespace ferrite
