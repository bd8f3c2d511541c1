// Training on Autodiff<Cpu>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Cpu>)
}  // namespace ferrite
