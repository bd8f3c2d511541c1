// Every op on Autodiff<CudaParity>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Autodiff<CudaParity>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
