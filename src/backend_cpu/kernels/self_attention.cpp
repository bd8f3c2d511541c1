// self_attention and its gradient.
#include "ferrite/backend/cpu.hpp"
#include "ops/attention_views.hpp"

namespace ferrite {

bool accepts(const Cpu& cpu, const op::SelfAttention& op, MetaSpan in) {
  return op::accepts_parts(cpu, op, in);
}
void run(Cpu& cpu, const op::SelfAttention& op, Ins in, Outs out) { op::run_on_parts(cpu, op, in, out); }

bool accepts(const Cpu& cpu, const op::SelfAttentionBackward& op, MetaSpan in) {
  return op::accepts_parts(cpu, op, in);
}
void run(Cpu& cpu, const op::SelfAttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  op::run_on_parts(cpu, op, in, out, mask);
}

}  // namespace ferrite
