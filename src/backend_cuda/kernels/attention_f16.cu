#include "backend_cuda/kernels/attention.cuh"

namespace ferrite::cuda::attention {

template void attend<__half>(const Call&, const Problem&, const Array&, const Array&, const Array&,
                             const Array&, const Array&);

}  // namespace ferrite::cuda::attention
