// Every op on Cuda, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Cuda, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
