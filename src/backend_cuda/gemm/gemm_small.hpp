// Our own products for small matrices, where the host's time counts: a plain launch takes 4 us of it, a call
// of cuBLASLt 8 to 12. Every block computes one tile of the result. If there are fewer tiles than SMs, the
// blocks of a cluster share the inner dimension and add their parts through distributed shared memory, in a
// fixed order, without a second launch.
//
// f16 and bf16 multiply on tensor cores and sum in f32, and so does f32 if tf32 is allowed (rounded to
// nearest); exact f32 uses fused multiply-adds. Every part is one sum in the order of k, whatever the tile:
// variants differ in the last bits only because their parts begin at different places.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <string>
#include <vector>

#include "backend_cuda/gemm/gemm_problem.hpp"
#include "ferrite/core/export.hpp"

namespace ferrite::cuda {

/// A variant: which of the tile sizes of the problem's dtype, and how many blocks share the inner dimension.
struct SmallGemm {
  std::uint8_t tile = 0;   // below small_gemm_tiles, the smallest first
  std::uint8_t parts = 1;  // 1, 2, 4 or 8
};
inline constexpr int small_gemm_tiles = 4, most_small_gemm_parts = 8;

/// f32, f16, bf16; no epilogue and no C; all matrices begin at multiples of 16 bytes, as do their columns
/// (rows, where transposed) and the matrices of a batch. Every variant computes every accepted problem.
FERRITE_API bool accepts_small_gemm(const GemmProblem& problem);
/// The variants of an accepted problem that are worth timing: those that neither leave most SMs idle nor
/// split more than that or the precision of f32 requires; there may be none. The first is the smallest tile
/// in the fewest parts, which suits the tiniest problems.
FERRITE_API std::vector<SmallGemm> small_gemm_candidates(const GemmProblem& problem);
/// "own/64x64x32/k4": tile rows, columns, depth of a stage, parts.
FERRITE_API std::string name_of(SmallGemm variant, const GemmProblem& problem);

/// Once per variant, kind of problem and GPU, before the launch: allows its shared memory.
FERRITE_API cudaError_t prepare_small_gemm(SmallGemm variant, const GemmProblem& problem);
FERRITE_API cudaError_t launch_small_gemm(SmallGemm variant, const GemmProblem& problem,
                                          const GemmArguments& arguments, cudaStream_t stream);

/// What a kernel gets: one of GemmProblem's products in elements and 32-bit extents.
struct SmallGemmArguments {
  const void *a, *b;
  void* d;
  std::int64_t lda, ldb, ldd, stride_a, stride_b, stride_d;
  int m, n, k;
  bool add;
};
/// The kernels of one tile size, by where k is dense: in neither operand, in B, in A, in both.
struct SmallGemmKernels {
  int rows, columns, depth, threads;
  struct {
    const void* function;
    int shared_bytes;
  } layout[4];
};
std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_f32();
std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_tf32();
std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_f16();
std::span<const SmallGemmKernels, small_gemm_tiles> small_gemm_kernels_bf16();

}  // namespace ferrite::cuda
