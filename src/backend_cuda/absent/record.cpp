// record in a build without CUDA. There is no Cuda to call it with, so it only has to exist.
#include "ferrite/backend/record.hpp"

#include "ferrite/backend/cuda_device.hpp"

namespace ferrite {

std::unique_ptr<RecordedStep> record(Cuda&, const std::function<void()>&, const RecordedStep*) {
  throw DeviceError("[cuda] " + cuda_unavailable_reason());
}

}  // namespace ferrite
