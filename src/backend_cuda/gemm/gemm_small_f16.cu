// Small products of f16.
#include "backend_cuda/gemm/gemm_small_tensor.cuh"

namespace ferrite::cuda {

std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_f16() {
  return small_gemm::kernels_16_bit<__half>();
}

}  // namespace ferrite::cuda
