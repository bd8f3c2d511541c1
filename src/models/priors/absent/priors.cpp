// The priors' GPU kernels in a build without CUDA, where there is no Cuda object to call them with.
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/models/priors/ops.hpp"

namespace ferrite {

void run(Cuda&, const op::FormulaPrior&, Ins, Outs) {
  throw DeviceError("[formula_prior] " + cuda_unavailable_reason());
}
void run(Cuda&, const op::PriorDatasets&, Ins, Outs) {
  throw DeviceError("[prior_datasets] " + cuda_unavailable_reason());
}

}  // namespace ferrite
