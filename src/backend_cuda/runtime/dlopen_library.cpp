// Finds and loads libraries of NVIDIA.
#include "backend_cuda/runtime/dlopen_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backend_cuda/runtime/compile_times.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {

DlopenLibrary::DlopenLibrary(std::string file) : file_(std::move(file)) {
  const CompileScope loading("load " + file_);
  for (const std::string folder : {"", FERRITE_CUDA_LIBRARY_DIR "/", FERRITE_CUDNN_LIBRARY_DIR "/"}) {
    handle_ = dlopen((folder + file_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) return;
    reason_ = dlerror();
  }
}

void* DlopenLibrary::find(const char* name) const {
  void* const function = handle_ ? dlsym(handle_, name) : nullptr;
  if (function) return function;
  throw BackendError(fmt::format("[cuda] {}: {}; install it, or add its folder to LD_LIBRARY_PATH", file_,
                                 handle_ ? fmt::format("has no function {}", name) : reason_));
}

}  // namespace ferrite::cuda
