// Every op on Lazy<Cuda>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Lazy<Cuda>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
