// Turns CUDA status codes into ferrite's errors, with advice for the user.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite::cuda {

/// BackendError (OutOfMemory for that status): "[what] cudaErrorX (its text): advice". Clears the status, so
/// that the next call does not report it again.
[[noreturn]] FERRITE_API void throw_error(cudaError_t status, std::string_view what);

/// True for an error that ends CUDA in a process: a kernel that failed while it ran. Every later call returns
/// it again.
FERRITE_API bool is_context_lost(cudaError_t status) noexcept;
/// Throws the error of a lost context. Libraries only say that they failed; this asks CUDA why.
FERRITE_API void check_context(std::string_view what);

inline void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) [[unlikely]]
    throw_error(status, what);
}

/// After a kernel launch: a refused launch (grid, shared memory, no code for this GPU) is an error of this
/// op.
FERRITE_API void check_launch(std::string_view op);

}  // namespace ferrite::cuda
