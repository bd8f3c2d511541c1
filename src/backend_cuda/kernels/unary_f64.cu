// Unary functions of f64.
#include "backend_cuda/kit/unary.cuh"

namespace ferrite::cuda {

template Kernels unary_kernels<double>(UnaryFn);
template GridKernel unary_strided<double>();

}  // namespace ferrite::cuda
