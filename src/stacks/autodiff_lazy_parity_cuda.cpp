// Every op on Autodiff<Parity<Lazy<Cuda>, Cuda>>, compiled once.
#include "ferrite/stacks.hpp"

namespace ferrite {
#define FERRITE_DEFINE(Op) FERRITE_EVALUATE(, Autodiff<CudaLazyParity>, Op)
FERRITE_ALL_OPS(FERRITE_DEFINE)
}  // namespace ferrite
