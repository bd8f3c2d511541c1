// Every op on Autodiff<Profiled<Cuda>>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Autodiff<Profiled<Cuda>>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
