// Reference: the backend that puts correctness first. Plain loops, all arithmetic in double (int64 for
// integers and bool), one rounding to the output's dtype, no threads, no libraries. It is the oracle of every
// other backend and the "naive" row of every benchmark.
#pragma once

#include <string>
#include <string_view>

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/primitives.hpp"

namespace ferrite {

namespace kernel {
class Kernel;
struct Grid;
}  // namespace kernel
namespace op {
struct Launch;
}

/// Runs only the primitives and user kernels. Every fused op is composed, so it is also the oracle of the
/// fusions. Inputs are read whole before an output is written, so an output may share memory with an input in
/// any way. Results go where `out` says; shapes and dtypes are those of the op's `infer`, which the caller
/// has checked.
class FERRITE_API Reference {
 public:
  using Primitive = Array;

  Array allocate(const Meta& meta) { return allocate(meta, "allocate"); }
  /// The same for an op: OutOfMemory names it.
  Array allocate(const Meta& meta, std::string_view op);
  /// Dense row-major bytes into a contiguous array; ShapeError for any other layout.
  void copy_from_host(const Array& target, const void* source);
  /// An array of any layout into dense row-major bytes.
  void copy_to_host(const Array& source, void* target);
  void synchronize() {}

  Device device() const { return {}; }
  MemoryStats memory_stats() const;
  std::string describe() const { return "reference"; }

  /// A user's kernel, with a pointer to each argument as emitted code takes them (kernel/emit.hpp).
  void launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments);
};

FERRITE_API void run(Reference&, const op::Fill& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Iota& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Random& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Copy& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Unary& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Binary& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Where& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Reduce& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::ArgReduce& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Scan& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Matmul& op, Ins in, Outs out);
/// If several indices are out of range, the error names the first in row-major order, and nothing is written.
FERRITE_API void run(Reference&, const op::Gather& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::Scatter& op, Ins in, Outs out);
FERRITE_API void run(Reference&, const op::ScatterAdd& op, Ins in, Outs out);
/// User kernels, run by the interpreter (kernel/interpreter.hpp).
FERRITE_API void run(Reference&, const op::Launch& op, Ins in, Outs out);

}  // namespace ferrite
