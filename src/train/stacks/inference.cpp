// Layers without gradients, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_LAYERS(template class, Cpu)
FERRITE_LAYERS(template class, AnyBackend)
}  // namespace ferrite
