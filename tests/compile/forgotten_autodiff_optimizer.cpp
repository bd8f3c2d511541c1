// An optimiser on a backend that does not record.
#include "ferrite/backend/cpu.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/optim/adam.hpp"

using namespace ferrite;
#ifdef COMPLETE
using B = Autodiff<Cpu>;
#else
using B = Cpu;
#endif

int main() {
  B b;
  Rng rng(1);
  nn::Linear<B> model(b, nn::LinearConfig{2, 1}, rng);
  optim::Adam<B> optimizer(model.parameters(), optim::AdamConfig{});
  optimizer.step(sum(model.forward(ones(b, {1, 2}))).backward());
}
