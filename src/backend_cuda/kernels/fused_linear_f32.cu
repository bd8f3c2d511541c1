// fused_linear with weights of f32.
#include "backend_cuda/kit/fused_linear.cuh"

namespace ferrite::cuda::fused_linear {

template void launch(const Call&, const Args<float, float>&);

}  // namespace ferrite::cuda::fused_linear
