// The conformance suite on Cuda against Reference, and once more with every op checked against Cpu.
#include "conformance/suite.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::conformance {
namespace {

bool register_cuda() {
  if (cuda_device_count() == 0) {
    add_test("Conformance", "OnCuda", [] { GTEST_SKIP() << cuda_unavailable_reason(); });
    return true;
  }
  return register_suite<Cuda>("Cuda") && register_suite<CudaParity>("CudaParity");
}

const bool registered = register_cuda();

}  // namespace
}  // namespace ferrite::conformance
