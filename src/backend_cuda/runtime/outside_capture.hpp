// Work that a running capture must not record.
#pragma once

#include <cuda_runtime_api.h>

namespace ferrite::cuda {

/// While a stream of this thread is being captured, calls like cudaMalloc, and libraries that make them while
/// they start, are forbidden unless the thread declares that they are not part of the capture.
class OutsideCapture {
 public:
  OutsideCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~OutsideCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace ferrite::cuda
