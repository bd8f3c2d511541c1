// From strided views to the column-major problems of cuBLASLt.
#include "backend_cuda/gemm/gemm.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "backend_cuda/runtime/libraries.hpp"

namespace ferrite::cuda {
namespace {

/// A matrix as a column-major one with this leading dimension, or as the transpose of one.
struct Stored {
  bool transposed;
  std::int64_t ld;
};

/// The stride of an axis of extent 1 means nothing. If both forms are possible, the dense axis is the one
/// with more than one element: a leading dimension of one element would count as misaligned.
std::optional<Stored> stored(std::int64_t rows, std::int64_t columns, const MatrixView& view) {
  const std::int64_t row_stride = view.row_stride, column_stride = view.column_stride;
  if (columns > 1 && column_stride == 1) {
    const std::int64_t ld = rows == 1 ? columns : row_stride;
    if (ld >= columns) return Stored{true, ld};
  }
  if (rows > 1 && row_stride == 1) {
    const std::int64_t ld = columns == 1 ? rows : column_stride;
    if (ld >= rows) return Stored{false, ld};
  }
  if (rows == 1 && columns == 1) return Stored{false, 1};
  if (rows == 1 && column_stride >= 1) return Stored{false, column_stride};
  if (columns == 1 && row_stride >= 1) return Stored{true, row_stride};
  return std::nullopt;
}

/// At most 256 bytes; no kernel asks for more.
std::uint8_t alignment(const void* data) {
  return static_cast<std::uint8_t>(std::countr_zero(reinterpret_cast<std::uintptr_t>(data) | 256u));
}

}  // namespace

bool is_plain(std::int64_t rows, std::int64_t columns, const MatrixView& view) {
  return stored(rows, columns, view).has_value();
}

bool library_product(const Call& call, const Product& product, Float32Products products,
                     const Finish& finish) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const BatchAxis batch = product.batch_axes > 0 ? product.batch[0] : BatchAxis{1, 0, 0, 0};
  if (std::max({product.rows, product.columns, product.inner, batch.extent}) > most) return false;
  const auto lhs = stored(product.rows, product.inner, product.lhs);
  const auto rhs = stored(product.inner, product.columns, product.rhs);
  // A bias runs along the rows of the column-major result, so the result must be `out` transposed. So must be
  // one with a residual, which is dense by rows.
  const auto out = finish.epilogue == Epilogue::none && !finish.residual
                       ? stored(product.rows, product.columns, product.out)
                       : Stored{true, std::max(product.columns, product.out.row_stride)};
  if (!lhs || !rhs || !out) return false;

  GemmProblem p{};
  p.k = product.inner;
  p.batch = batch.extent;
  p.ldd = out->ld;
  p.stride_d = batch.out;
  p.dtype = product.dtype;
  p.result = product.result;
  p.tf32 = product.dtype == DType::f32 && products == Float32Products::tf32;
  p.epilogue = finish.epilogue;
  p.align_d = alignment(product.out.data);
  if (finish.residual) {
    p.ldc = finish.residual_stride;
    p.align_c = alignment(finish.residual);
  }
  GemmArguments arguments{
      nullptr,     nullptr,         product.out.data,   finish.bias, finish.pre_activation,
      product.add, finish.residual, finish.add_residual};
  const auto set = [&](std::int64_t m, std::int64_t n, const MatrixView& a, Stored a_stored,
                       std::int64_t a_batch, const MatrixView& b, Stored b_stored, std::int64_t b_batch) {
    p.m = m;
    p.n = n;
    p.lda = a_stored.ld;
    p.ldb = b_stored.ld;
    p.transpose_a = a_stored.transposed;
    p.transpose_b = b_stored.transposed;
    p.stride_a = a_batch;
    p.stride_b = b_batch;
    p.align_a = alignment(a.data);
    p.align_b = alignment(b.data);
    arguments.a = a.data;
    arguments.b = b.data;
  };
  if (out->transposed)  // out^T = rhs^T lhs^T
    set(product.columns, product.rows, product.rhs, {!rhs->transposed, rhs->ld}, batch.rhs, product.lhs,
        {!lhs->transposed, lhs->ld}, batch.lhs);
  else
    set(product.rows, product.columns, product.lhs, *lhs, batch.lhs, product.rhs, *rhs, batch.rhs);
  Libraries& libraries = Libraries::of(call.context());
  return libraries.plans().run(libraries, call, p, arguments);
}

}  // namespace ferrite::cuda
