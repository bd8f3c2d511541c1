// Training on Autodiff<Lazy<Cuda>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Lazy<Cuda>>)
}  // namespace ferrite
