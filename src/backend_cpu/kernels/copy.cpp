// copy: between any two layouts and dtypes.
#include "ferrite/ops/copy.hpp"

#include "backend_cpu/kit/elementwise.hpp"
#include "ferrite/backend/cpu.hpp"

namespace ferrite {

void run(Cpu&, const op::Copy&, Ins in, Outs out, Accumulate mask) {
  const bool accumulate = accumulates(mask, 0);
  const DType dtype = accumulate ? compute_dtype(out[0].dtype()) : in[0].dtype();
  const cpu::Source source{&in[0], nullptr, dtype};
  cpu::run_elementwise({nullptr, dtype}, {&source, 1}, out[0], accumulate);
}

}  // namespace ferrite
