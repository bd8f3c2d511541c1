// Cpu: the fast backend on host memory. Vector code compiled for one instruction set, one thread pool
// (FERRITE_NUM_THREADS). Results do not depend on the number of threads: only the layouts decide how work is
// cut into chunks.
#pragma once

#include <string>
#include <string_view>

#include "ferrite/ops/op.hpp"

namespace ferrite {

namespace kernel {
class Kernel;
struct Grid;
}  // namespace kernel

/// It has no state: all objects share the allocator and the thread pool, and any thread may use them. Kernels
/// expect outputs of the shape and dtype that the op infers. An elementwise output may have the buffer and
/// layout of an input; any other overlap of an output with an input is undefined.
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

  /// A user's kernel, with a pointer to each argument as emitted code takes them (kernel/emit.hpp).
  void launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments);
};

}  // namespace ferrite
