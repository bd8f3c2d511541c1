// Gradients of the unary functions in f64.
#include "backend_cuda/kit/unary.cuh"

namespace ferrite::cuda {

template Kernels unary_backward_kernels<double>(UnaryFn);
template GridKernel unary_backward_strided<double>();

}  // namespace ferrite::cuda
