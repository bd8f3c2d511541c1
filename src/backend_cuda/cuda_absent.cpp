// Cuda in a build without CUDA: its constructor says so.
#include <fmt/format.h>

#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite {

Cuda::Cuda(int device) : index_(device), context_(nullptr) {
  throw DeviceError(fmt::format("[cuda] cuda:{}: {}", device, cuda_unavailable_reason()));
}

}  // namespace ferrite
