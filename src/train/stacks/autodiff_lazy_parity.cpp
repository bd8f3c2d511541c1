// Training on Autodiff<Parity<Lazy<Cpu>, Cpu>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<LazyParity>)
}  // namespace ferrite
