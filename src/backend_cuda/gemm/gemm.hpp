// Matrix products of strided views: by cuBLASLt if it can express them or, for small ones, by our own kernels
// with less work on the host (plan_cache.hpp); by a plain kernel for everything else (integers, extents
// beyond 31 bits).
#pragma once

#include "backend_cuda/gemm/plan_cache.hpp"

namespace ferrite::cuda {

/// The first element and the distances between rows and columns, in elements.
struct MatrixView {
  void* data;
  std::int64_t row_stride, column_stride;
};
/// An axis of a batch: the number of products, and each operand's step from one to the next, in elements.
struct BatchAxis {
  std::int64_t extent, lhs, rhs, out;
};
inline constexpr int max_batch_axes = max_rank - 2;

/// out[rows, columns] = lhs[rows, inner] rhs[inner, columns], or +=; no extent 0. Operands of 16 bits may
/// have a result of f32; otherwise all are of one dtype.
struct Product {
  DType dtype, result;
  std::int64_t rows, columns, inner;
  MatrixView lhs, rhs, out;
  bool add = false;
  int batch_axes = 0;
  BatchAxis batch[max_batch_axes] = {};
};

/// True if cuBLASLt takes the matrix as it is: rows or columns dense, and no overlap along the other stride.
bool is_plain(std::int64_t rows, std::int64_t columns, const MatrixView& view);

/// Floating dtypes, plain matrices, at most one batch axis with non-negative strides. With an epilogue or a
/// residual: no batch, and out dense by rows. Runs cuBLASLt or our own small product, as the plan cache
/// chose; false, with nothing done, if neither can.
struct Finish {
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;      // [columns], dense, 16-byte aligned
  void* pre_activation = nullptr;  // lies as out, 16-byte aligned
  const void* residual =
      nullptr;  // of the result's shape and dtype, not out itself, columns dense; not with gelu
  std::int64_t residual_stride = 0;                     // from row to row, at least `columns`
  const std::function<void()>* add_residual = nullptr;  // out += residual in a launch of its own
};
bool library_product(const Call& call, const Product& product, Float32Products products,
                     const Finish& finish = {});

/// Every dtype but bool and every stride, for any sizes. f16 and bf16 accumulate in f32, integers wrap.
void plain_product(const Call& call, const Product& product);

}  // namespace ferrite::cuda
