// Training on a backend chosen at run time, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<AnyBackend>)
}  // namespace ferrite
