// The stacks on Cuda in a build without CUDA: nobody can have a Cuda to ask them for.
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {

#define FERRITE_ABSENT_STACK(...)                             \
  template <>                                                 \
  FERRITE_API OpTable<__VA_ARGS__> op_table<__VA_ARGS__>() {  \
    throw DeviceError("[cuda] " + cuda_unavailable_reason()); \
  }
FERRITE_ABSENT_STACK(Cuda)
FERRITE_ABSENT_STACK(Profiled<Cuda>)
FERRITE_ABSENT_STACK(CudaParity)
FERRITE_ABSENT_STACK(Lazy<Cuda>)
FERRITE_ABSENT_STACK(CudaLazyParity)
FERRITE_ABSENT_STACK(Autodiff<Cuda>)

}  // namespace ferrite
