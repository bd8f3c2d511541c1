// Training on Autodiff<Profiled<Cuda>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Profiled<Cuda>>)
}  // namespace ferrite
