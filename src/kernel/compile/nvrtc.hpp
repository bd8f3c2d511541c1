// What the CUDA backend needs from NVRTC beyond kernel/emit.hpp.
#pragma once

#include <string>
#include <vector>

#include "kernel/compile/binary_cache.hpp"

namespace ferrite::kernel {

/// "13.0". Loads the library; throws BackendError if it is not installed.
FERRITE_API std::string nvrtc_version();

/// Machine code for an architecture such as 90, from the cache or compiled and kept there. The key is the
/// text, the options, the architecture and the version of NVRTC.
FERRITE_API std::string cached_cubin(const std::string& cuda_source, int architecture,
                                     const BinaryCache& cache);

/// CUDA C++ that a user wrote. Unlike emitted text it may use all that NVRTC has.
struct RawText {
  std::string source;
  std::string file;                  // its name in messages
  std::vector<std::string> options;  // of NVRTC
};
/// Throw what compile_ptx() throws.
FERRITE_API std::string raw_ptx(const RawText& text, int architecture);
FERRITE_API std::string raw_cubin(const RawText& text, int architecture);
FERRITE_API std::string cached_cubin(const RawText& text, int architecture, const BinaryCache& cache);

}  // namespace ferrite::kernel
