// Records on a GPU.
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

void run_records_on_gpu(const Config&, std::span<Record>) {
  throw BackendError("[irsynth] verify gpu: kernels cannot be launched on a GPU in this build");
}

}  // namespace ferrite::irsynth
