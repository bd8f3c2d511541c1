// cached_attention with a cache of bf16.
#include "backend_cuda/kit/cached_attention.cuh"

namespace ferrite::cuda::cached_attention {

template void launch(const Call&, const Args<float, __nv_bfloat16>&);
template void launch(const Call&, const Args<__nv_bfloat16, __nv_bfloat16>&);

}  // namespace ferrite::cuda::cached_attention
