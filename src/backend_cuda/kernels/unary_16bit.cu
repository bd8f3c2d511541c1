// Unary functions of f16 and bf16, computed in f32.
#include "backend_cuda/kit/unary.cuh"

namespace ferrite::cuda {

template Kernels unary_kernels<Half>(UnaryFn);
template Kernels unary_kernels<BFloat16>(UnaryFn);

}  // namespace ferrite::cuda
