// Verification on a GPU in a build without CUDA.
#include <fmt/format.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

void run_records_on_gpu(const Config&, std::span<Record>) {
  throw DeviceError(fmt::format("[irsynth] verify gpu: {}", cuda_unavailable_reason()));
}

}  // namespace ferrite::irsynth
