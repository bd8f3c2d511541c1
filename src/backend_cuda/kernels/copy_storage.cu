// Copies to the dtypes for storage from every dtype.
#include "backend_cuda/kit/copy.cuh"

namespace ferrite::cuda {

template Kernels copy_kernels<std::int8_t>(DType);
template Kernels copy_kernels<std::uint16_t>(DType);
template Kernels copy_kernels<std::uint32_t>(DType);

}  // namespace ferrite::cuda
