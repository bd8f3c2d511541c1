// aside in a build without CUDA. There is no Cuda to call it with, so it only has to exist.
#include "ferrite/backend/aside.hpp"

#include "ferrite/backend/cuda_device.hpp"

namespace ferrite {

std::unique_ptr<Aside> aside(Cuda&) { throw DeviceError("[cuda] " + cuda_unavailable_reason()); }

}  // namespace ferrite
