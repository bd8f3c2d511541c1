// The answers of cuda_device.hpp in a build without CUDA.
#include "ferrite/backend/cuda_device.hpp"

#include "ferrite/core/error.hpp"

namespace ferrite {

int cuda_device_count() { return 0; }
std::string cuda_unavailable_reason() {
  return "this ferrite was built without CUDA: configure it with -DFERRITE_CUDA=ON, which needs nvcc";
}
std::vector<CudaDeviceInfo> cuda_devices() { return {}; }
std::string cudnn_version() { throw DeviceError("[cudnn_version] " + cuda_unavailable_reason()); }
std::vector<CudaLink> cuda_links() { return {}; }
std::shared_ptr<std::byte[]> pinned_memory(std::size_t) {
  throw DeviceError("[pinned_memory] " + cuda_unavailable_reason());
}

}  // namespace ferrite
