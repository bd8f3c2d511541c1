// Plans of cuBLASLt: the descriptors of a product and the algorithm that computes it. Making one takes the
// heuristic some 50 us and measuring its proposals milliseconds; a training step asks for the same few
// products again and again, so a call is one look into a hash table, 0.1 us.
#pragma once

#include <cublasLt.h>

#include "backend_cuda/arrays.hpp"
#include "backend_cuda/plan_key.hpp"
#include "core/spin.hpp"

namespace ferrite::cuda {

class Libraries;

/// What happens to a sum on its way to memory. The bias has one element per row of D; `gelu` is the tanh form
/// and also stores its argument, in a matrix that lies as D does.
enum class Epilogue : std::uint8_t { none, bias, relu, relu_bias, gelu, gelu_bias };

/// D[m, n] = op(A)[m, k] op(B)[k, n], all column-major, times `batch`: everything a plan depends on. Extents
/// fit 31 bits. Alignments are powers of two, in bytes, as their logarithm.
struct GemmProblem {
  std::int64_t m, n, k, batch;
  std::int64_t lda, ldb, ldd;
  std::int64_t stride_a, stride_b, stride_d;  // from one product of the batch to the next
  DType dtype;                                // floating
  bool tf32;                                  // f32 operands may be rounded to tf32
  bool transpose_a, transpose_b;
  Epilogue epilogue;
  std::uint8_t align_a, align_b, align_d;
};

struct GemmArguments {
  const void *a, *b;
  void* d;
  const void* bias = nullptr;      // 16-byte aligned
  void* pre_activation = nullptr;  // 16-byte aligned
  bool add = false;                // D += instead of D =
};

class PlanCache {
 public:
  /// Queues the product; false, with nothing done, where cuBLASLt has no algorithm for it. The first call for
  /// a problem asks the heuristic for candidates and times them on these arguments (on a copy of D if it is
  /// added to). Within a capture, where nothing can be timed, a problem never timed before runs by the
  /// heuristic's first proposal, which is not kept: run a step before capturing it.
  bool run(Libraries& libraries, const Call& call, const GemmProblem& problem,
           const GemmArguments& arguments);

 private:
  struct Plan {
    cublasLtMatmulDescOpaque_t description;
    cublasLtMatrixLayoutOpaque_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
    bool double_scale;  // alpha and beta are double
    bool supported;
  };
  enum class Choice { final, provisional };

  static Plan describe(const GemmProblem& problem, const GemmArguments& arguments, std::string_view op);
  static cublasStatus_t launch(Libraries& libraries, const Plan& plan, const GemmArguments& arguments,
                               cudaStream_t stream);
  static Choice select(Libraries& libraries, const Call& call, const GemmProblem& problem,
                       const GemmArguments& arguments, Plan& plan);

  SpinLock lock_;
  PlanMap<GemmProblem, Plan> plans_;
};

}  // namespace ferrite::cuda
