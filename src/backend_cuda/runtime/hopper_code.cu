// Asks the driver which code it has chosen from this library: a GPU may run code that was made for an older
// one.
#include <array>
#include <atomic>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

constexpr int hopper = 9;

__global__ void any_kernel() {}

/// Of the current GPU. Where the driver has no answer, a launch will say what is wrong.
bool has_hopper_code(int device) {
  int major = 0;
  cudaFuncAttributes code{};
  const bool known =
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      cudaFuncGetAttributes(&code, any_kernel) == cudaSuccess;
  if (!known) static_cast<void>(cudaGetLastError());
  return known && major >= hopper && code.ptxVersion >= 10 * hopper;
}

}  // namespace

bool runs_hopper_code() {
  enum Answer : signed char { not_asked, no, yes };
  static std::array<std::atomic<Answer>, 64> answers{};
  if (device_count() == 0) return true;  // lists of kernels are complete then
  int device = 0;
  if (device_count() > 1) check(cudaGetDevice(&device), "cuda");
  std::atomic<Answer>& answer = answers.at(static_cast<std::size_t>(device));
  if (answer == not_asked) answer = has_hopper_code(device) ? yes : no;
  return answer == yes;
}

}  // namespace ferrite::cuda
