// self_attention and its gradient.
#include "ferrite/backend/cuda.hpp"
#include "ops/attention_views.hpp"

namespace ferrite {

bool accepts(const Cuda& cuda, const op::SelfAttention& op, MetaSpan in) {
  return op::accepts_parts(cuda, op, in);
}
void run(Cuda& cuda, const op::SelfAttention& op, Ins in, Outs out) { op::run_on_parts(cuda, op, in, out); }

bool accepts(const Cuda& cuda, const op::SelfAttentionBackward& op, MetaSpan in) {
  return op::accepts_parts(cuda, op, in);
}
void run(Cuda& cuda, const op::SelfAttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  op::run_on_parts(cuda, op, in, out, mask);
}

}  // namespace ferrite
