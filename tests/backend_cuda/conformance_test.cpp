// The suite on the GPU: against Reference, fused, and with every op checked against Cpu or Cuda.
#include <gtest/gtest.h>

#include "conformance/suite.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::conformance {
namespace {

const bool registered = [] {
  if (cuda_device_count() > 0)
    return register_suite("Cuda", "cuda") && register_suite("CudaParity", "cuda-parity") &&
           register_suite("LazyCuda", "lazy-cuda") && register_suite("LazyCudaParity", "cuda-lazy-parity");
  add_test("Conformance", "OnCuda", [] { GTEST_SKIP() << cuda_unavailable_reason(); });
  return true;
}();

}  // namespace
}  // namespace ferrite::conformance
