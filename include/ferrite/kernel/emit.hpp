// From IR to source text: standalone CUDA C++ and C++. Emitted code means what the interpreter does in native
// precision, except where the interpreter reports an error (an index out of bounds, integer division by
// zero): there it is undefined, as in C. Compilers may fuse a * b + c.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// An array argument of an emitted kernel: its elements and their layout. Vectors, matrices (row by row),
/// quaternions and structs are laid out as C structs of their scalars.
struct ArrayArgument {
  void* data = nullptr;
  std::int32_t shape[4] = {};
  std::int64_t strides[4] = {};  // in elements
};

/// The first argument of every emitted kernel: the grid.
struct LaunchArgument {
  std::int32_t shape[4] = {1, 1, 1, 1};  // extents, the last of those used is the fastest
  std::int32_t size = 1;                 // their product
  std::int32_t block_dim = 256;          // threads of a block
};

struct EmitOptions {
  /// Repeats each line of the kernel's source above the statements that come from it.
  bool source_lines = false;
  /// CUDA: threads per block that the kernel is compiled for; a launch may have fewer.
  int block_dim = 256;
  /// CUDA: vectors of 2 and 4 components are aligned to their size, so that memory is read and written in
  /// whole vectors. Arrays of them must be aligned as well.
  bool aligned_vectors = false;
  /// CUDA: products of floats are rounded separately; otherwise compilers may fuse a * b + c.
  bool separate_products = false;
};

/// The symbol of a kernel in emitted CUDA and C++: "saxpy_kernel".
FERRITE_API std::string entry_name(const Function& kernel);

/// CUDA C++ for nvcc or NVRTC with the kernel as
///   extern "C" __global__ void saxpy_kernel(Launch launch, float a, array<float> x, ...)
/// It works for any number of blocks. A kernel with shared arrays or barriers needs blocks of
/// launch.block_dim threads. Throws KernelError for atomics that GPUs do not have (8 bits).
FERRITE_API std::string emit_cuda(const Module& module, const Function& kernel,
                                  const EmitOptions& options = {});
/// All kernels of the module in one text.
FERRITE_API std::string emit_cuda(const Module& module, const EmitOptions& options = {});

/// C++17 for the CPU, one thread after the other, with the kernel as
///   extern "C" void saxpy_kernel(const Launch* launch, float a, array<float> x, ...)
///   extern "C" void saxpy_kernel_packed(const Launch* launch, void* const* arguments)
/// The second takes a pointer to each argument, as CUDA launches do. Compile with -fwrapv: integers wrap. A
/// failed assertion throws std::runtime_error. Between barriers the threads of a block run one after the
/// other; throws KernelError for a return, break or continue that could separate them before a barrier.
FERRITE_API std::string emit_cpp(const Module& module, const Function& kernel,
                                 const EmitOptions& options = {});
FERRITE_API std::string emit_cpp(const Module& module, const EmitOptions& options = {});

/// least: code that runs slower but is compiled several times faster (from NVRTC 12.8 on).
enum class CompileEffort : std::uint8_t { full, least };

/// CUDA C++ compiled to PTX by NVRTC for an architecture such as 90; needs no GPU. Throws BackendError if
/// NVRTC is not installed, ValueError for an architecture that it does not know, KernelError with its log for
/// a text that it refuses.
FERRITE_API std::string compile_ptx(const std::string& cuda_source, int architecture = 90,
                                    CompileEffort effort = CompileEffort::full);
/// The same to machine code for cuModuleLoadData, only for GPUs of this architecture.
FERRITE_API std::string compile_cubin(const std::string& cuda_source, int architecture = 90,
                                      CompileEffort effort = CompileEffort::full);

}  // namespace ferrite::kernel
