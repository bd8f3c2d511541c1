// RawKernel in a build without CUDA: programs that use it link, and it says what is missing.
#include "ferrite/cuda/raw_kernel.hpp"

#include "ferrite/backend/cuda_device.hpp"

namespace ferrite {

namespace {
[[noreturn]] void throw_no_raw_kernels() { throw DeviceError("[raw kernel] " + cuda_unavailable_reason()); }
}  // namespace

void RawKernel::launch_list(Cuda&, const RawGrid&, std::span<const RawArgument>) const {
  throw_no_raw_kernels();
}
void RawKernel::prepare(Cuda&) const { throw_no_raw_kernels(); }
std::string RawKernel::ptx(int) const { throw_no_raw_kernels(); }

}  // namespace ferrite
