// Training on Autodiff<Cuda>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Cuda>)
}  // namespace ferrite
