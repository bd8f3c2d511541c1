// Every op on CudaParity, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, CudaParity, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
