// cached_attention with a cache of f16.
#include "backend_cuda/kit/cached_attention.cuh"

namespace ferrite::cuda::cached_attention {

template void launch(const Call&, const Args<float, __half>&);
template void launch(const Call&, const Args<__half, __half>&);

}  // namespace ferrite::cuda::cached_attention
