// Unary functions of integers and bool, computed in i64.
#include "backend_cuda/kit/unary.cuh"

namespace ferrite::cuda {

template Kernels unary_kernels<std::int32_t>(UnaryFn);
template Kernels unary_kernels<std::int64_t>(UnaryFn);
template Kernels unary_kernels<std::uint8_t>(UnaryFn);
template Kernels unary_kernels<bool>(UnaryFn);
template GridKernel unary_strided<std::int64_t>();

}  // namespace ferrite::cuda
