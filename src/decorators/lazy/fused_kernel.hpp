// Turns a group into a kernel in the kernel language. Shapes, strides and scalars are arguments, so a kernel
// serves every group of the same structure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decorators/lazy/plan.hpp"
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/kernel.hpp"

namespace ferrite::lazy {

/// The place of an operand, whose number is an int because -1 stands for none.
inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// A scalar argument: op attributes that the structure leaves open.
struct ScalarArgument {
  kernel::ScalarType type;
  kernel::Number value;
};

struct FusedKernel {
  kernel::Kernel compiled;
  std::string ops;  // "mul add relu"
  std::int64_t launches = 0;

  /// Compiles it at the first call.
  void launch(Executor& executor, Device device, const Shape& grid, std::span<kernel::ArrayArgument> arrays,
              std::span<const ScalarArgument> scalars);
};

/// What groups with the same kernel have in common.
std::string structure_of(const Group& group, const Plan& plan);
/// Parameters: the arrays and the stored results (see Plan), the partial results, the scalars, and for a
/// reduction the extent of its axis and the number of partials, for several rounds the number of threads.
FusedKernel build_kernel(const Group& group, const Plan& plan);
std::vector<ScalarArgument> scalar_arguments(const Group& group, const Plan& plan);

/// The dtype in which a reduction's partial results are kept: 16-bit floats are rounded once, at the end.
DType partial_dtype(const Reduction& reduction);

}  // namespace ferrite::lazy
