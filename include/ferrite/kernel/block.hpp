// Kernels on the CPU without a compiler: a kernel becomes a list of instructions over registers, and each
// instruction runs in one tight loop over a block of threads, in vector registers of the machine.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

struct BlockCode;  // src/kernel/cpu/block/program.hpp

struct BlockOptions {
  /// Threads per block; used by wp.block_dim(), shared arrays and barriers.
  int block_dim = 256;
  /// Limit on the loop rounds of all threads together; beyond it the kernel is assumed to hang.
  std::int64_t step_limit = std::numeric_limits<std::int64_t>::max();
  /// Whether the thread pool takes part. Kernels with atomics run only on the calling thread, so that their
  /// results do not depend on the number of threads.
  bool parallel = true;
};

/// A kernel compiled for the CPU, in microseconds. Several threads may run it at once.
///
/// Results equal those of the interpreter in native precision, bit by bit, except for exp, log, sin, cos,
/// tan, tanh and erf of f32, f16 and bf16 (within 6 units in the last place), and for sums of floats by
/// several atomics of one thread, which may be added in another order. A variable that is read before it is
/// written is zero, as in emitted code.
class FERRITE_API BlockProgram {
 public:
  /// The module and the kernel must outlive the program.
  BlockProgram(const Module& module, const Function& kernel);

  /// Why the interpreter runs the kernel instead, thread by thread: mostly variables that stand for several
  /// arrays. Empty if it runs in blocks.
  const std::string& fallback() const;

  /// Runs the kernel for every thread of the grid (1 to 4 extents, the last fastest). `arguments` has a
  /// pointer to each argument as emitted C++ takes them (emit.hpp): to a scalar, to the components of a
  /// composite, to an ArrayArgument, to a C struct of such. Arrays are changed in place. Throws as
  /// interpret() does; if several threads fail, it may report a different one.
  void run(std::span<const std::int64_t> dim, void* const* arguments, const BlockOptions& options = {}) const;

 private:
  std::shared_ptr<const BlockCode> code_;
};

}  // namespace ferrite::kernel
