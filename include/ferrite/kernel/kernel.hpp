// Kernel: a kernel that is ready to be launched, with everything that is derived from it once: its use of its
// arrays, its program for the CPU, its gradient, its CUDA text. docs/kernels.md shows how to use it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/shape.hpp"
#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/block.hpp"
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/ir.hpp"
#include "ferrite/kernel/parse.hpp"

namespace ferrite::kernel {

/// What a kernel may do to the elements of an array parameter.
struct ArrayUse {
  bool reads = false;
  bool writes = false;    // regardless of the old value, or by atomics that are not sums
  bool adds = false;      // += and -=, atomic_add and atomic_sub
  bool extremes = false;  // atomic_min and atomic_max
  bool changes() const { return writes || adds || extremes; }
};

/// The threads of a launch: 1 to 4 extents, the last the fastest, and the threads per block for kernels that
/// use their block (wp.block_dim(), shared arrays, barriers).
struct Grid {
  Shape dim;
  int block_dim = 256;

  Grid() = default;
  Grid(std::int64_t threads) : dim{threads} {}  // NOLINT(google-explicit-constructor)
  Grid(std::initializer_list<std::int64_t> extents) : dim(extents) {}
  Grid(const Shape& extents, int threads_of_a_block = 256) : dim(extents), block_dim(threads_of_a_block) {}
  Grid with_block_dim(int threads) const { return {dim, threads}; }
};

/// A cheap handle: copies share what was compiled. Any thread may use it.
class FERRITE_API Kernel {
 public:
  Kernel() = default;
  /// The kernel of this name in a text of the Warp dialect, or its only kernel. Throws KernelError with the
  /// place of the error, ValueError for an unknown name. `bindings` are those of parse().
  static Kernel from_source(std::string_view text, std::string_view name = {},
                            std::string_view file = "kernel.py", const Bindings& bindings = {});
  /// A kernel of a module that a program built; `options` say how its CUDA text is written.
  explicit Kernel(Module module, std::string_view name = {}, const EmitOptions& options = {});
  /// All kernels of a module. On a GPU they are compiled together, which is much faster than one by one.
  static std::vector<Kernel> all(Module module);

  bool defined() const { return state_ != nullptr; }
  /// Unique to this kernel and its copies within the process.
  std::uint64_t id() const;
  const Module& module() const;
  const Function& function() const;
  std::string_view name() const { return function().name; }
  int parameters() const { return function().parameters; }
  const Variable& parameter(int i) const { return function().variables[static_cast<std::size_t>(i)]; }
  /// One entry per parameter, empty for those that are not arrays.
  const std::vector<ArrayUse>& uses() const;
  /// Whether it uses its block: then its results depend on block_dim.
  bool sees_blocks() const;

  /// Its program for the CPU, made at the first call.
  const BlockProgram& program() const;
  /// The kernel of its gradient (kernel/adjoint.hpp), made at the first call. Throws KernelError if there
  /// is none.
  const Kernel& adjoint() const;
  /// Whether it is the adjoint() of another. `Reference` refuses races in such a kernel.
  bool is_adjoint() const;
  /// Its CUDA text for blocks of up to 256 threads, or of up to 1024, made at the first call.
  const std::string& cuda_source(int block_dim = 256) const;

  /// Launches it on a backend: see tensor/launch.hpp, which defines it.
  template <class B, class... Arguments>
  void launch(B& backend, const Grid& grid, Arguments&&... arguments) const;

 private:
  struct Shared;
  struct State;
  explicit Kernel(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace ferrite::kernel
