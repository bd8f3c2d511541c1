// cached_attention with a cache of f32.
#include "backend_cuda/kit/cached_attention.cuh"

namespace ferrite::cuda::cached_attention {

template void launch(const Call&, const Args<float, float>&);

}  // namespace ferrite::cuda::cached_attention
