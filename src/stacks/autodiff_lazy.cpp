// Every op on Autodiff<Lazy<Cpu>>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Autodiff<Lazy<Cpu>>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
