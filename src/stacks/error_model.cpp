// Every op on ErrorModel, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, ErrorModel, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
