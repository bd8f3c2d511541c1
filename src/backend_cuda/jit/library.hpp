// cudaLibrary_t, which the CUDA runtime has from 12.8 on. Before, it is the driver's, by the same names.
#pragma once

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12080
#include <cuda.h>

using cudaLibrary_t = CUlibrary;

namespace ferrite::cuda {

/// A function of the driver; null if the driver is older than the toolkit.
template <class F>
F* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result) != cudaSuccess) return nullptr;
  return reinterpret_cast<F*>(found);
}
inline cudaError_t as_runtime_error(CUresult result) { return static_cast<cudaError_t>(result); }

}  // namespace ferrite::cuda

inline cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, void*, void*, unsigned,
                                       void*, void*, unsigned) {
  static auto* const call = ferrite::cuda::driver_function<decltype(cuLibraryLoadData)>("cuLibraryLoadData");
  if (!call) return cudaErrorInsufficientDriver;
  return ferrite::cuda::as_runtime_error(call(library, code, nullptr, nullptr, 0, nullptr, nullptr, 0));
}
inline cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  static auto* const call =
      ferrite::cuda::driver_function<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel");
  if (!call) return cudaErrorInsufficientDriver;
  return ferrite::cuda::as_runtime_error(call(kernel, library, name));
}
inline cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  static auto* const call = ferrite::cuda::driver_function<decltype(cuLibraryUnload)>("cuLibraryUnload");
  if (!call) return cudaErrorInsufficientDriver;
  return ferrite::cuda::as_runtime_error(call(library));
}
#endif
