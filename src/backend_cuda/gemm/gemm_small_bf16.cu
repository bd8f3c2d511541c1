// Small products of bf16.
#include "backend_cuda/gemm/gemm_small_tensor.cuh"

namespace ferrite::cuda {

std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_bf16() {
  return small_gemm::kernels_16_bit<__nv_bfloat16>();
}

}  // namespace ferrite::cuda
