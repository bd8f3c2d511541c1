#include "backend_cuda/kit/norm_forward.cuh"
#include "ferrite/ops/layer_norm.hpp"

namespace ferrite {

void run(Cuda& cuda, const op::LayerNorm& op, Ins in, Outs out) {
  const cuda::Call call(cuda, op_name(op));
  cuda::run_norm<true>(cuda, call, op.eps, in, out);
}

}  // namespace ferrite
