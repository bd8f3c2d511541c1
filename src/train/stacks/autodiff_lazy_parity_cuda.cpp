// Training on Autodiff<Parity<Lazy<Cuda>, Cuda>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<CudaLazyParity>)
}  // namespace ferrite
