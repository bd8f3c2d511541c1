// Binary functions of integers and bool, computed in i64.
#include "backend_cuda/kit/binary.cuh"

namespace ferrite::cuda {

template Kernels binary_kernels<std::int32_t>(BinaryFn);
template Kernels binary_kernels<std::int64_t>(BinaryFn);
template Kernels binary_kernels<std::uint8_t>(BinaryFn);
template Kernels binary_kernels<bool>(BinaryFn);
template GridKernel binary_strided<std::int64_t>();

}  // namespace ferrite::cuda
