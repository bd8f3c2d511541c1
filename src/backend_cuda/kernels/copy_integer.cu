// Copies to integers and bool from every dtype.
#include "backend_cuda/kit/copy.cuh"

namespace ferrite::cuda {

template Kernels copy_kernels<std::int32_t>(DType);
template Kernels copy_kernels<std::int64_t>(DType);
template Kernels copy_kernels<std::uint8_t>(DType);
template Kernels copy_kernels<bool>(DType);

}  // namespace ferrite::cuda
