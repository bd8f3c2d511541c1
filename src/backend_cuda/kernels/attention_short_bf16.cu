#include "backend_cuda/kernels/attention_short.cuh"

namespace ferrite::cuda::attention {

template void attend_short<__nv_bfloat16>(const Call&, const Problem&, std::int64_t,
                                          const ForwardArrays<__nv_bfloat16>&);
template void attend_short_backward<__nv_bfloat16>(const Call&, const Problem&, std::int64_t,
                                                   const BackwardArrays<__nv_bfloat16>&,
                                                   const Gradient<__nv_bfloat16>&,
                                                   const Gradient<__nv_bfloat16>&,
                                                   const Gradient<__nv_bfloat16>&);

}  // namespace ferrite::cuda::attention
