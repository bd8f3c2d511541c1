// A matrix product in the form of the libraries, independent of who computes it.
#pragma once

#include <cstdint>
#include <functional>

#include "ferrite/core/dtype.hpp"

namespace ferrite::cuda {

/// What happens to a sum on its way to memory. The bias has one element per row of D; `gelu` is the tanh form
/// and also stores its argument, in a matrix that lies as D does.
enum class Epilogue : std::uint8_t { none, bias, gelu, gelu_bias };

/// D[m, n] = op(A)[m, k] op(B)[k, n] [+ C[m, n]], all column-major, times `batch`: everything a plan depends
/// on. Extents fit 31 bits. Alignments are powers of two, in bytes, as their logarithm.
struct GemmProblem {
  std::int64_t m, n, k, batch;
  std::int64_t lda, ldb, ldd;
  std::int64_t ldc;                           // 0: there is no C; with one there is no batch
  std::int64_t stride_a, stride_b, stride_d;  // from one product of the batch to the next
  DType dtype;                                // of A and B, floating
  DType result;                               // of C and D: the same, or f32 for 16-bit operands
  bool tf32;                                  // f32 operands may be rounded to tf32
  bool transpose_a, transpose_b;
  Epilogue epilogue;
  std::uint8_t align_a, align_b, align_c, align_d;
  std::uint8_t none[6];  // a key has no padding (plan_key.hpp)
};

struct GemmArguments {
  const void *a, *b;
  void* d;
  const void* bias = nullptr;      // 16-byte aligned
  void* pre_activation = nullptr;  // 16-byte aligned
  bool add = false;                // D += instead of D =
  const void* c = nullptr;
  const std::function<void()>* add_c = nullptr;  // D += C in a launch of its own, where that is faster
};

}  // namespace ferrite::cuda
