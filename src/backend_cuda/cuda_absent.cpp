// Cuda in a build without CUDA: its constructor says so.
#include <fmt/format.h>

#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite {

Cuda::Cuda(int device) : index_(device), context_(nullptr) {
  throw DeviceError(fmt::format("[cuda] cuda:{}: {}", device, cuda_unavailable_reason()));
}

namespace irsynth {
void run_records_on_gpu(const Config&, std::span<Record>) {
  throw DeviceError(fmt::format("[irsynth] verify gpu: {}", cuda_unavailable_reason()));
}
}  // namespace irsynth

}  // namespace ferrite
