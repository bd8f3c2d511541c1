// A training step on a backend that does not record.
#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/backend/cpu.hpp"

using namespace ferrite;
#ifdef COMPLETE
using B = Autodiff<Cpu>;
#else
using B = Cpu;
#endif

int main() {
  B b;
  const auto w = parameter(ones(b, {2}), "w");
  sum(w * w).backward().of(w);
}
