// Training on Autodiff<Profiled<Cpu>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<Profiled<Cpu>>)
}  // namespace ferrite
