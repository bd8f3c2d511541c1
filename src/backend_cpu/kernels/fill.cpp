// fill: one value everywhere.
#include "ferrite/ops/fill.hpp"

#include "backend_cpu/kit/elementwise.hpp"
#include "ferrite/backend/cpu.hpp"

namespace ferrite {

void run(Cpu&, const op::Fill& op, Ins, Outs out) {
  const DType dtype = out[0].dtype();
  const cpu::ScalarValue value(op.value, dtype, dtype);
  const cpu::Source source{nullptr, value.bytes, dtype};
  cpu::run_elementwise({nullptr, dtype}, {&source, 1}, out[0]);
}

}  // namespace ferrite
