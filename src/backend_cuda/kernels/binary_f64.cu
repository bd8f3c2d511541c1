// Binary functions of f64.
#include "backend_cuda/kit/binary.cuh"

namespace ferrite::cuda {

template Kernels binary_kernels<double>(BinaryFn);
template GridKernel binary_strided<double>();

}  // namespace ferrite::cuda
