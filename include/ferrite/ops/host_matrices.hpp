// What the ops of linear algebra share: a factorisation is not a composition of other ops, so its definition
// is a loop over f64 in host memory. Reference runs it, and every backend that has no kernel for the op.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/ops/op.hpp"
#include "ferrite/ops/views.hpp"

namespace ferrite::detail {

// Defined in backend/evaluate.hpp, which whoever runs an op includes.
template <class B>
Array contiguous(B& b, const Array& x);

/// Matrices [..., rows, columns] in host memory, row-major, one after the other.
struct FERRITE_API HostMatrices {
  Shape batch;
  std::int64_t count = 0, rows = 0, columns = 0;
  std::vector<double> values;

  HostMatrices() = default;
  HostMatrices(const Meta& meta, const std::byte* bytes);
  /// Zeros, as many matrices as `like` has.
  HostMatrices(const HostMatrices& like, std::int64_t m, std::int64_t n)
      : batch(like.batch),
        count(like.count),
        rows(m),
        columns(n),
        values(static_cast<std::size_t>(count * m * n)) {}
  double* operator[](std::int64_t i) { return values.data() + i * rows * columns; }
  const double* operator[](std::int64_t i) const { return values.data() + i * rows * columns; }
  /// The elements rounded to a dtype.
  std::vector<std::byte> bytes(DType dtype) const;
};

/// Ops with such a definition.
template <class Op>
concept DefinedOnHost = requires(const Op& op, std::span<const HostMatrices> in,
                                 std::span<HostMatrices> out) {
  op.on_host(in, out);
};

/// Runs `op.on_host(inputs, outputs)`, which fills one HostMatrices per output.
template <class B, class Op>
void assemble_on_host(B& b, const Op& op, Ins in, Outs out) {
  std::vector<HostMatrices> inputs, outputs(out.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Array dense = contiguous(b, in[i]);
    std::vector<std::byte> bytes(dense.meta().bytes());
    b.copy_to_host(dense, bytes.data());
    inputs.emplace_back(dense.meta(), bytes.data());
  }
  op.on_host(inputs, outputs);
  for (std::size_t k = 0; k < out.size(); ++k)
    b.copy_from_host(out[k], outputs[k].bytes(out[k].dtype()).data());
}

/// Flips the columns of a row-major matrix whose largest element is negative; `flipped` is told which. Among
/// elements that differ by rounding the first one counts, for symmetric matrices often have vectors with
/// several largest elements.
template <class T, class F>
void make_largest_positive(T* x, std::int64_t rows, std::int64_t columns, F&& flipped) {
  constexpr T nearly = T(0.999);
  for (std::int64_t j = 0; j < columns; ++j) {
    T largest = 0;
    for (std::int64_t i = 0; i < rows; ++i) largest = std::max(largest, std::abs(x[i * columns + j]));
    std::int64_t first = 0;
    while (first < rows && !(std::abs(x[first * columns + j]) >= nearly * largest)) ++first;
    if (first == rows || x[first * columns + j] >= 0) continue;
    for (std::int64_t i = 0; i < rows; ++i) x[i * columns + j] = -x[i * columns + j];
    flipped(j);
  }
}

template <class T>
void make_largest_positive(T* x, std::int64_t rows, std::int64_t columns) {
  make_largest_positive(x, rows, columns, [](std::int64_t) {});
}

/// 2^e with elements of x between -2 and 2 once they are divided by it: squares of scaled elements stay in
/// range. 1 for zeros.
template <class T>
T power_of_two_above(const T* x, std::int64_t count) {
  T largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  constexpr int most = std::numeric_limits<T>::max_exponent - 2;  // its reciprocal is in range too
  return std::ldexp(T{1}, std::clamp(std::ilogb(largest), -most, most));
}

/// The matrices [..., rows, columns] that begin at `begin` on the last axis of an output that holds several.
template <class B>
Tensor<B> matrix_part(const Tensor<B>& packed, std::int64_t begin, std::int64_t rows, std::int64_t columns) {
  Shape shape = packed.shape();
  shape[packed.rank() - 1] = rows;
  shape.push_back(columns);
  return reshape(slice(packed, -1, begin, begin + rows * columns), shape);
}

// Shape rules.
/// x is [..., M, N] of f32 or f64.
FERRITE_API void check_matrices(std::string_view op, std::string_view what, const Meta& x);
/// ... and M is N.
FERRITE_API void check_square(std::string_view op, std::string_view what, const Meta& x);
/// The shape without its last two axes, and then with these.
FERRITE_API Shape with_matrix(const Shape& shape, std::int64_t rows, std::int64_t columns);
FERRITE_API Shape batch_of(const Shape& shape);
/// The batch axes of the results of an op on pairs of matrices. The ShapeError has the whole shapes.
FERRITE_API Shape broadcast_batches(std::string_view op, std::string_view left, const Shape& a,
                                    std::string_view right, const Shape& b);
/// "[solve] matrix [1, 3] of the batch is singular". `index` counts the matrices of the batch.
[[noreturn]] FERRITE_API void throw_bad_matrix(std::string_view op, const Shape& batch, std::int64_t index,
                                               std::string_view what);

/// Both operands of an op on pairs of matrices, with the same batch axes.
template <class B>
std::pair<Tensor<B>, Tensor<B>> broadcast_matrices(std::string_view op, const Tensor<B>& a,
                                                   const Tensor<B>& b) {
  check_matrices(op, "a", a.meta());
  check_matrices(op, "b", b.meta());
  const Shape batch = broadcast_batches(op, "a", a.shape(), "b", b.shape());
  const auto expanded = [&](const Tensor<B>& x) {
    Shape shape = batch;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return expand(x, shape);
  };
  return {expanded(a), expanded(b)};
}

}  // namespace ferrite::detail
