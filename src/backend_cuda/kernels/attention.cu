// Attention without a buffer of all scores: by cuDNN where it takes the case (and, of short ones, is faster),
// else by ferrite's own kernels (attention.cuh).
#include "backend_cuda/dnn/attention_bias.hpp"
#include "backend_cuda/dnn/attention_plans.hpp"
#include "backend_cuda/kit/attention.hpp"
#include "ferrite/ops/attention.hpp"

namespace ferrite {

using namespace cuda;
using namespace cuda::attention;

bool accepts(const Cuda& cuda, const op::Attention&, MetaSpan in) {
  return takes(cuda, in[0], in[1], in[2], in.size() > 3 ? &in[3] : nullptr, Direction::forward);
}

void run(Cuda& cuda, const op::Attention& op, Ins in, Outs out) {
  const Array &q = in[0], &k = in[1], &v = in[2], &lse = out[1];
  if (lse.shape().numel() == 0) return;
  const Call call(cuda, op_name(op));
  const bool has_mask = in.size() > 3;
  const auto own = [&] {
    const Problem p = problem_of(q, k, v, has_mask ? &in[3] : nullptr, op.causal, op.window, op.scale);
    visit_type(q.dtype(), [&]<class T>() { attend<T>(call, p, q, k, v, out[0], lse); });
  };
  AttentionArrays arrays;
  arrays.q = q, arrays.k = k, arrays.v = v, arrays.o = out[0], arrays.lse = lse;
  const bool takes_bias = has_mask && op.window == 0 && suits_dnn_with_mask(arrays, op.causal, op.scale);
  if (takes_bias) arrays.bias = attention_bias(cuda, call, q, k, in[3]);
  const bool expressible = op.window == 0 && (!has_mask || arrays.bias.defined());
  if (!expressible || !attend_by_dnn(cuda, call, arrays, op.causal, op.scale, own))
    own();
  else if (has_mask)
    clear_hidden_rows(call, out[0], lse);
  call.finish();
}

}  // namespace ferrite
