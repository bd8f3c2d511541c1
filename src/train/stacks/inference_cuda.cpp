// Layers on Cuda alone, for inference, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_LAYERS(template class, Cuda)
}  // namespace ferrite
