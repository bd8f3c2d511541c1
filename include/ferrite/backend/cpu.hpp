// Cpu: the fast backend on host memory. Vector code compiled for one instruction set, one thread pool
// (FERRITE_NUM_THREADS). Results do not depend on the number of threads: only the layouts decide how work is
// cut into chunks (but see Products, and linear algebra there).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/ops/op.hpp"

namespace ferrite {

namespace kernel {
class Kernel;
struct Grid;
}  // namespace kernel

/// Who multiplies matrices of f32 and f64. reproducible: ferrite's own kernel, whose results have the same
/// bits for any number of threads. openblas: OpenBLAS, where it is installed. fastest: for products of each
/// kind (dtype, layout, size) the one of the two that was faster in the first few; the bits may then differ
/// from run to run. Products inside other kernels, as in attention and conv2d, are always ferrite's own.
/// Linear algebra (cholesky, solve, lu, qr, eigh, svd and what is made of them) is by OpenBLAS in all three
/// from 96 x 96 on, where it is installed. Its bits depend on num_threads(): set_num_threads(1) fixes them.
enum class Products : std::uint8_t { reproducible, openblas, fastest };

/// All objects share the allocator and the thread pool, and any thread may use them. Kernels expect outputs
/// of the shape and dtype that the op infers. An elementwise output may have the buffer and layout of an
/// input; any other overlap of an output with an input is undefined.
class FERRITE_API Cpu {
 public:
  using Primitive = Array;
  using Handle = Cpu;
  /// Tensors of all objects mix; their settings are not compared.
  friend bool operator==(const Cpu&, const Cpu&) { return true; }

  Array allocate(const Meta& meta) { return allocate(meta, "allocate"); }
  /// The same for an op: OutOfMemory names it.
  Array allocate(const Meta& meta, std::string_view op);
  /// Between an array of any layout and dense row-major bytes.
  void copy_from_host(const Array& array, const void* source);
  void copy_to_host(const Array& array, void* target);
  void synchronize() {}
  Device device() const { return {}; }
  MemoryStats memory_stats() const;
  /// "cpu (x86-64-v4, 2 threads)"
  std::string describe() const;

  /// For ops of this object and of later copies of it, as tensors hold them. The default is
  /// FERRITE_PRODUCTS (reproducible, openblas or fastest), else reproducible.
  void set_products(Products products) { products_ = products; }
  Products products() const { return products_; }

  /// A user's kernel, with a pointer to each argument as emitted code takes them (kernel/emit.hpp).
  void launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments);

 private:
  static Products default_products();
  Products products_ = default_products();
};

}  // namespace ferrite
