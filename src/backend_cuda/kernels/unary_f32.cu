// Unary functions of f32.
#include "backend_cuda/kit/unary.cuh"

namespace ferrite::cuda {

template Kernels unary_kernels<float>(UnaryFn);
template GridKernel unary_strided<float>();

}  // namespace ferrite::cuda
