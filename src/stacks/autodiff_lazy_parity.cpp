// Every op on Autodiff<Parity<Lazy<Cpu>, Cpu>>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Autodiff<LazyParity>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
