// Binary functions of f16 and bf16, computed in f32.
#include "backend_cuda/kit/binary.cuh"

namespace ferrite::cuda {

template Kernels binary_kernels<Half>(BinaryFn);
template Kernels binary_kernels<BFloat16>(BinaryFn);

}  // namespace ferrite::cuda
