// fused_linear with weights of bf16.
#include "backend_cuda/kit/fused_linear.cuh"

namespace ferrite::cuda::fused_linear {

template void launch(const Call&, const Args<float, __nv_bfloat16>&);
template void launch(const Call&, const Args<__nv_bfloat16, __nv_bfloat16>&);

}  // namespace ferrite::cuda::fused_linear
