// Training on Autodiff<CudaParity>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<CudaParity>)
}  // namespace ferrite
