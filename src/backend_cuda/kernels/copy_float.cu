// Copies to floats from every dtype.
#include "backend_cuda/kit/copy.cuh"

namespace ferrite::cuda {

template Kernels copy_kernels<float>(DType);
template Kernels copy_kernels<double>(DType);
template Kernels copy_kernels<Half>(DType);
template Kernels copy_kernels<BFloat16>(DType);

}  // namespace ferrite::cuda
