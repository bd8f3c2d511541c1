// A part of a tensor is a tensor of its own: what is assigned to it would be lost.
#include "ferrite/backend/cpu.hpp"
#include "ferrite/tensor/tensor.hpp"

using namespace ferrite;

int main() {
  Cpu b;
  Tensor<Cpu> x = zeros(b, {2, 3});
#ifdef COMPLETE
  x = ones(b, {2, 3});
#else
  x[0] = ones(b, {3});
#endif
}
