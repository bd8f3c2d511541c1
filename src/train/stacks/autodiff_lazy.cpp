// Training on Autodiff<Lazy<Cpu>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Lazy<Cpu>>)
}  // namespace ferrite
