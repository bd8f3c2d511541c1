// The slow path of check.hpp: explains a CUDA status to the user.
#include "ferrite/cuda/check.hpp"

#include <fmt/format.h>

#include "backend_cuda/runtime/outside_capture.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
namespace {

std::string_view advice(cudaError_t status) {
  if (is_context_lost(status))
    return "a kernel of this or an earlier op failed and CUDA in this process is lost; other backends work "
           "on, "
           "the GPU needs a new process (CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer names the kernel)";
  switch (status) {
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
      return "the NVIDIA driver is too old for this CUDA runtime; update the driver";
    case cudaErrorNoDevice:
      return "no CUDA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the cpu backend";
    case cudaErrorDevicesUnavailable:
      return "the GPU is taken by another process in exclusive mode";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "this build has no code for this GPU; add its architecture to FERRITE_CUDA_ARCHS "
             "and rebuild";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureWrongThread:
    case cudaErrorCapturedEvent:
      return "this cannot be captured into a CUDA graph; do it before or after the capture";
    case cudaErrorLaunchOutOfResources:
      return "a block needs more registers or shared memory than there are; use fewer threads per block";
    case cudaErrorCudartUnloading:
      return "the process is ending; use no GPU tensors after main has returned";
    case cudaErrorMemoryAllocation:
      return "the GPU or the host has no memory left; use smaller batches or release cached memory";
    default:
      return "the CUDA call failed";
  }
}

}  // namespace

// Not inline: the status belongs to the CUDA runtime inside this library; a program may have another one.
void check_launch(std::string_view op) { check(cudaPeekAtLastError(), op); }

bool is_context_lost(cudaError_t status) noexcept {
  switch (status) {
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
    case cudaErrorNvlinkUncorrectable:
#if CUDART_VERSION >= 12080
    case cudaErrorContained:
#endif
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
    case cudaErrorContextIsDestroyed:
      return true;
    default:
      return false;
  }
}

void check_context(std::string_view what) {
  const OutsideCapture outside;
  std::size_t free = 0, total = 0;
  const cudaError_t status = cudaMemGetInfo(&free, &total);  // does not wait
  if (is_context_lost(status)) throw_error(status, what);
  static_cast<void>(cudaGetLastError());
}

void throw_error(cudaError_t status, std::string_view what) {
  static_cast<void>(cudaGetLastError());
  const std::string text = fmt::format("[{}] {} ({}): {}", what, cudaGetErrorName(status),
                                       cudaGetErrorString(status), advice(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text);
  throw BackendError(text);
}

}  // namespace ferrite::cuda
