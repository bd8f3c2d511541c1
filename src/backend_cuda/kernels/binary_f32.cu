// Binary functions of f32.
#include "backend_cuda/kit/binary.cuh"

namespace ferrite::cuda {

template Kernels binary_kernels<float>(BinaryFn);
template GridKernel binary_strided<float>();

}  // namespace ferrite::cuda
