// Every op on Parity<Cpu, Reference>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, CpuParity, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
