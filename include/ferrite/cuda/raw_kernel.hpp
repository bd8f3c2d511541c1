// RawKernel: a kernel in CUDA C++, as a text, launched on tensors of a GPU. For what the kernel language
// (kernel/kernel.hpp) does not have: warp shuffles, tensor cores, asynchronous copies. Nothing is derived
// from it: it has no gradient and runs on no other backend. Needs NVRTC, but no CUDA header.
//
//   const auto scale = RawKernel::from_source(R"(
//     extern "C" __global__ void scale(const float* x, float* y, float a, long long n) {
//       const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
//       if (i < n) y[i] = a * x[i];
//     })", "scale");
//   scale.launch(gpu, RawGrid::over(n), x, y, 2.0f, n);
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ferrite/backend/cuda.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/tensor/tensor.hpp"

namespace ferrite {

/// The blocks of a launch, the threads of each, and the bytes of shared memory that a block has beside its
/// own `__shared__` variables.
struct RawGrid {
  struct Extents {
    std::int64_t x = 1, y = 1, z = 1;
  };
  Extents blocks;
  Extents threads = {256};
  std::int64_t shared_bytes = 0;

  /// As many blocks as have n threads together. Throws ValueError unless n >= 0 and blocks have a thread.
  static RawGrid over(std::int64_t n, std::int64_t threads_of_a_block = 256) {
    if (n < 0 || threads_of_a_block < 1)
      throw ValueError("[raw kernel] RawGrid::over(" + std::to_string(n) + ", " +
                       std::to_string(threads_of_a_block) +
                       "): needs n >= 0 and blocks of at least one thread");
    return {{divide_up(n, threads_of_a_block)}, {threads_of_a_block}, 0};
  }
  RawGrid with_shared_bytes(std::int64_t bytes) const { return {blocks, threads, bytes}; }
};

/// An argument of a launch. A tensor is a pointer to its first element, and must be dense. Everything else is
/// copied byte by byte: numbers, pointers, structs of them. Its type must be the parameter's, since a double
/// is not converted to a float. A tensor that is not const counts as changed, which a backward pass that
/// needs its old value will notice.
class RawArgument {
 public:
  RawArgument(const Tensor<Cuda>& x) : array_(x.primitive()) {}            // NOLINT
  RawArgument(Tensor<Cuda>& x) : array_(x.primitive()), changes_(true) {}  // NOLINT
  RawArgument(const Array& x) : array_(x) {}                               // NOLINT
  RawArgument(Array& x) : array_(x), changes_(true) {}                     // NOLINT
  template <class B>
  RawArgument(const Tensor<B>&) {  // NOLINT
    static_assert(
        std::is_same_v<B, Cuda>,
        "a raw kernel takes tensors of Cuda; of a decorator, pass the array on the GPU: primitive()");
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> RawArgument(const T& value) : bytes_(sizeof(T)) {  // NOLINT
    std::memcpy(bytes_.data(), &value, sizeof(T));
  }

  bool is_tensor() const { return bytes_.empty(); }
  const Array& array() const { return array_; }
  bool changes() const { return changes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  Array array_;
  bool changes_ = false;
  std::vector<std::byte> bytes_;
};

/// A cheap handle: copies share what was compiled. Any thread may use it.
class FERRITE_API RawKernel {
 public:
  RawKernel() = default;
  /// The kernel of this name in a text of CUDA C++, where it is `extern "C" __global__`. `options` are
  /// NVRTC's: "-DN=16", "--use_fast_math", "-I/folder". The standard is C++17 unless they say otherwise.
  /// Nothing is compiled yet.
  static RawKernel from_source(std::string source, std::string name, std::vector<std::string> options = {}) {
    static std::atomic<std::uint64_t> next{0};
    RawKernel kernel;
    kernel.state_ =
        std::make_shared<const State>(State{std::move(source), std::move(name), std::move(options), next++});
    return kernel;
  }

  bool defined() const { return state_ != nullptr; }
  const std::string& name() const { return state().name; }

  /// Runs it on the stream of this GPU, in the order of the ops; it is compiled at the first launch, or read
  /// from the cache on disk (docs/kernels.md). An empty grid launches nothing. Throws KernelError with the
  /// log of NVRTC for a text that it refuses; ValueError for a name that the text does not have, a grid that
  /// no GPU takes, or arguments that differ from the parameters in number or size (drivers before CUDA 12.4
  /// do not know); ShapeError for a tensor that is not dense; DeviceError for one that is not on this GPU;
  /// BackendError if there is no NVRTC, or if it would have to be compiled inside a capture. What the kernel
  /// itself does wrong, such as an access outside of its tensors, is undefined behaviour, as in CUDA.
  template <class... Arguments>
  void launch(Cuda& cuda, const RawGrid& grid, Arguments&&... arguments) const {
    const std::vector<RawArgument> list{RawArgument(std::forward<Arguments>(arguments))...};
    launch_list(cuda, grid, list);
  }
  /// The same with the arguments in a list.
  void launch_list(Cuda& cuda, const RawGrid& grid, std::span<const RawArgument> arguments) const;

  /// Compiles and loads it, which is required before it is captured in a CUDA graph. Throws what launch
  /// throws.
  void prepare(Cuda& cuda) const;
  /// Its PTX for an architecture such as 90; needs no GPU. Throws what launch throws.
  std::string ptx(int architecture = 90) const;

 private:
  struct State {
    std::string source, name;
    std::vector<std::string> options;
    std::uint64_t id;  // unique within the process
  };
  const State& state() const;
  std::shared_ptr<const State> state_;
};

}  // namespace ferrite
