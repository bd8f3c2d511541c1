// Training on Autodiff<Parity<Cpu, Reference>>, compiled once.
#include "ferrite/train/stacks.hpp"

namespace ferrite {
FERRITE_TRAINING(template class, Autodiff<CpuParity>)
}  // namespace ferrite
