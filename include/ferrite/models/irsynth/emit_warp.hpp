// Kernels in the form in which NVIDIA Warp 1.19 writes them before it compiles them: flat three-address code
// with numbered variables over Warp's own native library, with the lines of the Python source as comments.
// Use it for training and comparison; to run a kernel, use kernel::emit_cuda or kernel::emit_cpp.
#pragma once

#include <string>

#include "ferrite/kernel/ir.hpp"
#include "ferrite/models/irsynth/config.hpp"

namespace ferrite::irsynth {

struct WarpOptions {
  Device device = Device::cuda;
  /// Also the backward kernel and the adjoints of functions, unless the kernel has enable_backward=False.
  bool backward = true;
  /// CUDA: a grid-stride loop around the body, Warp's default; else one thread for each index.
  bool grid_stride = true;
};

/// The kernel and the functions that it calls, token by token as Warp prints them with its option strip_hash.
/// Warp's header and the definitions of structs are left out, and names of structs have no hash. Values that
/// Warp evaluates while it reads the Python (constants, loops over up to 16 constants) are evaluated here
/// too. The text follows the module's source, or print(module) if it has none or was changed since. Throws
/// KernelError for code that Warp refuses (a variable that begins as a literal and changes in a dynamic loop)
/// or does not have (shared arrays, barriers), and for the few calls that Warp writes as separate functions
/// (wp.norm_l1).
FERRITE_API std::string emit_warp(const kernel::Module& module, const kernel::Function& kernel,
                                  const WarpOptions& options = {});
/// All kernels of the module, each function once.
FERRITE_API std::string emit_warp(const kernel::Module& module, const WarpOptions& options = {});

}  // namespace ferrite::irsynth
