// cross_attention and its gradient.
#include "ferrite/backend/cuda.hpp"
#include "ops/attention_views.hpp"

namespace ferrite {

bool accepts(const Cuda& cuda, const op::CrossAttention& op, MetaSpan in) {
  return op::accepts_parts(cuda, op, in);
}
void run(Cuda& cuda, const op::CrossAttention& op, Ins in, Outs out) { op::run_on_parts(cuda, op, in, out); }

bool accepts(const Cuda& cuda, const op::CrossAttentionBackward& op, MetaSpan in) {
  return op::accepts_parts(cuda, op, in);
}
void run(Cuda& cuda, const op::CrossAttentionBackward& op, Ins in, Outs out, Accumulate mask) {
  op::run_on_parts(cuda, op, in, out, mask);
}

}  // namespace ferrite
