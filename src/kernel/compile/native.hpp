// Emitted C++ compiled by the system's compiler, for kernels that run long enough to pay for it.
#pragma once

#include <string>

#include "ferrite/kernel/emit.hpp"
#include "kernel/compile/binary_cache.hpp"

namespace ferrite::kernel {

/// NAME_packed of emitted C++.
using NativeKernel = void (*)(const LaunchArgument*, void* const*);

/// The kernel `entry` of emitted C++, compiled by `compiler` ("c++") with optimisation for this machine, or
/// from the cache. Stays loaded as long as the process lives. Throws BackendError if the compiler cannot be
/// run or refuses the text.
FERRITE_API NativeKernel compile_native(const std::string& source, const std::string& entry,
                                        const std::string& compiler, const BinaryCache& cache);

}  // namespace ferrite::kernel
