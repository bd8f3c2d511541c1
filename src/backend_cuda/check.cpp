// The slow path of check.hpp: what a CUDA status means for the user.
#include "backend_cuda/check.hpp"

#include <fmt/format.h>

#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
namespace {

std::string_view advice(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
      return "the NVIDIA driver is too old for this CUDA runtime; update the driver";
    case cudaErrorNoDevice:
      return "no CUDA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the cpu backend";
    case cudaErrorDevicesUnavailable:
      return "the GPU is taken by another process in exclusive mode";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "this build has no code for this GPU; add its architecture to CMAKE_CUDA_ARCHITECTURES and "
             "rebuild";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureImplicit:
      return "this cannot be captured into a CUDA graph; do it before or after the capture";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
      return "a kernel of this or an earlier op failed and CUDA in this process is lost; start a new process "
             "(CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer names the kernel)";
    case cudaErrorCudartUnloading:
      return "the process is ending; use no GPU tensors after main has returned";
    case cudaErrorMemoryAllocation:
      return "the GPU or the host has no memory left; use smaller batches or release cached memory";
    default:
      return "the CUDA call failed";
  }
}

}  // namespace

void throw_error(cudaError_t status, std::string_view what) {
  static_cast<void>(cudaGetLastError());
  const std::string text = fmt::format("[{}] {} ({}): {}", what, cudaGetErrorName(status),
                                       cudaGetErrorString(status), advice(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw BackendError(text);
}

}  // namespace ferrite::cuda
