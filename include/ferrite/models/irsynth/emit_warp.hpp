// Kernels in the form NVIDIA Warp 1.19 writes them before it compiles them: flat three-address code with
// numbered variables over Warp's own native library, the lines of the Python source as comments. It is a text
// to learn from and to compare with; to run a kernel, take kernel::emit_cuda or kernel::emit_cpp.
#pragma once

#include <string>

#include "ferrite/kernel/ir.hpp"
#include "ferrite/models/irsynth/config.hpp"

namespace ferrite::irsynth {

struct WarpOptions {
  Device device = Device::cuda;
  /// The backward kernel and the adjoints of functions too, unless the kernel has enable_backward=False.
  bool backward = true;
  /// CUDA: a grid-stride loop around the body, Warp's default; else one thread for each index.
  bool grid_stride = true;
};

/// The functions that the kernel calls and the kernel, token by token as Warp prints them with its option
/// strip_hash; Warp's header and the definitions of structs are left out, and names of structs have no hash.
/// What Warp evaluates while it reads the Python (constants, loops over up to 16 constants) is evaluated
/// here. The text is that of the module's source, or of print(module) where it has none or was changed since.
/// Throws KernelError for what Warp refuses (a variable that begins as a literal and changes in a dynamic
/// loop) or does not have (shared arrays, barriers), and for the few calls that Warp writes as functions of
/// its own (wp.norm_l1).
FERRITE_API std::string emit_warp(const kernel::Module& module, const kernel::Function& kernel,
                                  const WarpOptions& options = {});
/// All kernels of the module, each function once.
FERRITE_API std::string emit_warp(const kernel::Module& module, const WarpOptions& options = {});

}  // namespace ferrite::irsynth
