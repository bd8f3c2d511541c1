// The conformance suite on Lazy<Cuda>, and once more with every op checked against Cuda.
#include "conformance/suite.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::conformance {
namespace {

bool register_lazy() {
  if (cuda_device_count() == 0) {
    add_test("Conformance", "OnLazyCuda", [] { GTEST_SKIP() << cuda_unavailable_reason(); });
    return true;
  }
  return register_suite<Lazy<Cuda>>("LazyCuda") && register_suite<CudaLazyParity>("LazyCudaParity");
}

const bool registered = register_lazy();

}  // namespace
}  // namespace ferrite::conformance
