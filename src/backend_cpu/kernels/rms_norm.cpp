// rms_norm and its gradient.
#include "ferrite/ops/rms_norm.hpp"

#include "backend_cpu/kit/normalize_rows.hpp"

namespace ferrite {

void run(Cpu& cpu, const op::RmsNorm& op, Ins in, Outs out) { cpu::normalize<false>(cpu, op, in, out); }
void run(Cpu& cpu, const op::RmsNormBackward&, Ins in, Outs out, Accumulate mask) {
  cpu::normalize_backward<false>(cpu, in, out, mask);
}

}  // namespace ferrite
