// Training on Autodiff<Reference>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Reference>)
}  // namespace ferrite
