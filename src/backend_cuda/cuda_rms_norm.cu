#include "backend_cuda/norm_forward.cuh"
#include "ferrite/ops/rms_norm.hpp"

namespace ferrite {

void Cuda::run(const op::RmsNorm& op, Ins in, Outs out) {
  const cuda::Call call(*this, op_name(op));
  cuda::run_norm<false>(*this, call, op.eps, in, out);
}

}  // namespace ferrite
