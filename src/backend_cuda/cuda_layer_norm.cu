#include "backend_cuda/norm_forward.cuh"
#include "ferrite/ops/layer_norm.hpp"

namespace ferrite {

void Cuda::run(const op::LayerNorm& op, Ins in, Outs out) {
  const cuda::Call call(*this, op_name(op));
  cuda::run_norm<true>(*this, call, op.eps, in, out);
}

}  // namespace ferrite
