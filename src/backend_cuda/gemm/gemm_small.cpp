// The variants of the small products for a problem, and their launch.
#include "backend_cuda/gemm/gemm_small.hpp"

#include <fmt/format.h>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {
namespace {

constexpr std::int64_t most_extent = std::int64_t{1} << 30;  // what the kernels count in 32 bits
constexpr std::int64_t most_blocks = 65535;                  // of the grid's y and z axes

std::span<const SmallGemmKernels, small_gemm_tiles> kernels_of(const GemmProblem& p) {
  switch (p.dtype) {
    case DType::f16:
      return small_gemm_kernels_f16();
    case DType::bf16:
      return small_gemm_kernels_bf16();
    default:
      return p.tf32 ? small_gemm_kernels_tf32() : small_gemm_kernels_f32();
  }
}

const auto& layout_of(const SmallGemmKernels& kernels, const GemmProblem& p) {
  return kernels.layout[2 * p.transpose_a + !p.transpose_b];
}

}  // namespace

bool accepts_small_gemm(const GemmProblem& p) {
  if (p.dtype != DType::f32 && p.dtype != DType::f16 && p.dtype != DType::bf16) return false;
  if (p.result != p.dtype) return false;
  if (p.epilogue != Epilogue::none || p.ldc != 0 || p.align_a < 4 || p.align_b < 4 || p.align_d < 4)
    return false;
  if (p.m > most_extent || p.n > most_extent || p.k > most_extent) return false;
  if (p.batch > most_blocks || divide_up(p.n, kernels_of(p)[0].columns) > most_blocks) return false;
  const auto lanes = static_cast<std::int64_t>(16 / size_of(p.dtype));
  const auto is_aligned = [&](std::int64_t lines, std::int64_t ld, std::int64_t stride) {
    return (lines == 1 || ld % lanes == 0) && (p.batch == 1 || stride % lanes == 0);
  };
  return is_aligned(p.transpose_a ? p.m : p.k, p.lda, p.stride_a) &&
         is_aligned(p.transpose_b ? p.k : p.n, p.ldb, p.stride_b) && is_aligned(p.n, p.ldd, p.stride_d);
}

std::vector<SmallGemm> small_gemm_candidates(const GemmProblem& p) {
  constexpr std::int64_t few_blocks = 64, many_blocks = 264;  // half of an H200's SMs, and two for each
  // One long sum of f32 has twice the error of cuBLASLt's, which splits it.
  constexpr std::int64_t longest_chain = 256;
  std::vector<SmallGemm> variants;
  const auto kernels = kernels_of(p);
  const std::uint8_t most_parts = runs_hopper_code() ? most_small_gemm_parts : 1;
  for (std::uint8_t tile = 0; tile < small_gemm_tiles; ++tile) {
    const SmallGemmKernels& kernel = kernels[tile];
    const std::int64_t tiles = p.batch * divide_up(p.m, kernel.rows) * divide_up(p.n, kernel.columns);
    for (std::uint8_t parts = 1; parts <= most_parts; parts *= 2) {
      const bool fills = tile == 0 || tiles * parts >= few_blocks;
      const bool splits = tiles * parts <= many_blocks && parts <= divide_up(p.k, kernel.depth);
      const bool is_exact = p.dtype != DType::f32 || p.tf32 || p.k <= longest_chain * parts;
      if (fills && is_exact && (parts == 1 || splits)) variants.push_back({tile, parts});
    }
  }
  return variants;
}

std::string name_of(SmallGemm variant, const GemmProblem& p) {
  const SmallGemmKernels& kernel = kernels_of(p)[variant.tile];
  return fmt::format("own/{}x{}x{}/k{}", kernel.rows, kernel.columns, kernel.depth, variant.parts);
}

cudaError_t prepare_small_gemm(SmallGemm variant, const GemmProblem& p) {
  const auto& layout = layout_of(kernels_of(p)[variant.tile], p);
  return cudaFuncSetAttribute(layout.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              layout.shared_bytes);
}

cudaError_t launch_small_gemm(SmallGemm variant, const GemmProblem& p, const GemmArguments& arguments,
                              cudaStream_t stream) {
  const SmallGemmKernels& kernel = kernels_of(p)[variant.tile];
  const auto& layout = layout_of(kernel, p);
  SmallGemmArguments values{arguments.a,
                            arguments.b,
                            arguments.d,
                            p.lda,
                            p.ldb,
                            p.ldd,
                            p.stride_a,
                            p.stride_b,
                            p.stride_d,
                            static_cast<int>(p.m),
                            static_cast<int>(p.n),
                            static_cast<int>(p.k),
                            arguments.add};
  void* parameters[] = {&values};
  const dim3 grid(static_cast<unsigned>(divide_up(p.m, kernel.rows) * variant.parts),
                  static_cast<unsigned>(divide_up(p.n, kernel.columns)), static_cast<unsigned>(p.batch));
  const LaunchConfig config(stream, grid, kernel.threads, layout.shared_bytes, variant.parts, Start::early);
  return cudaLaunchKernelExC(config.get(), layout.function, parameters);
}

}  // namespace ferrite::cuda
