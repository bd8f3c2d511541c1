#include "backend_cuda/kernels/attention_backward.cuh"

namespace ferrite::cuda::attention {

template void attend_backward<float>(const Call&, const Problem&, const Array&, const Array&, const Array&,
                                     const Array&, const Array&, const float*, const float*, const Array&,
                                     const Array&, const Array&, Accumulate);

}  // namespace ferrite::cuda::attention
