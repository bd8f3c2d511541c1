// layer_norm and its gradient.
#include "ferrite/ops/layer_norm.hpp"

#include "backend_cpu/kit/normalize_rows.hpp"

namespace ferrite {

void run(Cpu& cpu, const op::LayerNorm& op, Ins in, Outs out) { cpu::normalize<true>(cpu, op, in, out); }
void run(Cpu& cpu, const op::LayerNormBackward&, Ins in, Outs out, Accumulate mask) {
  cpu::normalize_backward<true>(cpu, in, out, mask);
}

}  // namespace ferrite
