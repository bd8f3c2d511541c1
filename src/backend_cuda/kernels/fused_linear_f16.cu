// fused_linear with weights of f16.
#include "backend_cuda/kit/fused_linear.cuh"

namespace ferrite::cuda::fused_linear {

template void launch(const Call&, const Args<float, __half>&);
template void launch(const Call&, const Args<__half, __half>&);

}  // namespace ferrite::cuda::fused_linear
