// Every op on Autodiff<Reference>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Autodiff<Reference>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
