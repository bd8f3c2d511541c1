// Gradients of the unary functions in f32.
#include "backend_cuda/kit/unary.cuh"

namespace ferrite::cuda {

template Kernels unary_backward_kernels<float>(UnaryFn);
template GridKernel unary_backward_strided<float>();

}  // namespace ferrite::cuda
