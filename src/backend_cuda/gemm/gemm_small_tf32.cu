// Small products of f32 rounded to tf32.
#include "backend_cuda/gemm/gemm_small_tensor.cuh"

namespace ferrite::cuda {

std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_tf32() {
  using namespace small_gemm;
  static const SmallGemmKernels tiles[] = {kernels<TensorCores<float, 32, 32, 32, 4, 16, 16>>(),
                                           kernels<TensorCores<float, 64, 64, 32, 4, 32, 32>>(),
                                           kernels<TensorCores<float, 128, 64, 32, 4, 64, 32>>(),
                                           kernels<TensorCores<float, 128, 128, 32, 4, 64, 32>>()};
  return tiles;
}

}  // namespace ferrite::cuda
