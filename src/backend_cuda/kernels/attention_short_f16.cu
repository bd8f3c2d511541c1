#include "backend_cuda/kernels/attention_short.cuh"

namespace ferrite::cuda::attention {

template void attend_short<__half>(const Call&, const Problem&, std::int64_t, const ForwardArrays<__half>&);
template void attend_short_backward<__half>(const Call&, const Problem&, std::int64_t,
                                            const BackwardArrays<__half>&, const Gradient<__half>&,
                                            const Gradient<__half>&, const Gradient<__half>&);

}  // namespace ferrite::cuda::attention
