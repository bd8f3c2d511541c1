// Every op on Profiled<Cuda>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Profiled<Cuda>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
