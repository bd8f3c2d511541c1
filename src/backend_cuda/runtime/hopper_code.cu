// Asks the driver which code it has chosen from this library: a GPU may run code that was made for an older
// one.
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

constexpr int hopper = 9;

__global__ void any_kernel() {}

bool has_hopper_code(int device) {
  const DeviceGuard current(device);
  int major = 0;
  cudaFuncAttributes code{};
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cuda");
  check(cudaFuncGetAttributes(&code, any_kernel), "cuda");
  return major >= hopper && code.ptxVersion >= 10 * hopper;
}

}  // namespace

bool runs_hopper_code() {
  static const bool all = [] {
    for (int device = 0; device < device_count(); ++device)
      if (!has_hopper_code(device)) return false;
    return true;
  }();
  return all;
}

}  // namespace ferrite::cuda
