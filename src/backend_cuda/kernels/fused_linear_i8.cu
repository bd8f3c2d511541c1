// fused_linear with weights of 8 bits: one row only.
#include "backend_cuda/kit/fused_linear_row.cuh"

namespace ferrite::cuda::fused_linear {

template <class X>
void launch(const Call& call, const Args<X, std::int8_t>& args) {
  launch_row(call, args);
}
template void launch(const Call&, const Args<float, std::int8_t>&);
template void launch(const Call&, const Args<__half, std::int8_t>&);
template void launch(const Call&, const Args<__nv_bfloat16, std::int8_t>&);

}  // namespace ferrite::cuda::fused_linear
