// svd: A = U diag(S) V^T. pinv, lstsq and the matrix norms that need it.
#pragma once

#include "ferrite/ops/eigh.hpp"
#include "ferrite/ops/qr.hpp"

namespace ferrite {
namespace op {

/// One output, so that all parts have a gradient: the elements of U, then S, then V^T. Singular values
/// descend; the largest element of each column of U is positive.
/// # Shapes: A [..., M, N] -> [..., M K + K + K N], K = min(M, N); f32 or f64
struct FERRITE_API Svd {
  static constexpr std::string_view type_name = "svd";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  Metas example(DType d) const { return {{{3, 2}, d}}; }
  static void attributes(auto&, auto&&) {}
  void on_host(std::span<const detail::HostMatrices> in, std::span<detail::HostMatrices> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const {
    detail::assemble_on_host(b, *this, in, out);
  }
  Saves saves() const { return {.outputs = {0}}; }
  template <class B>
  void vjp(Vjp<B>& v) const;

  template <class B>
  struct Parts {
    Tensor<B> u, s, vt;
  };
  template <class B>
  static Parts<B> parts(const Tensor<B>& packed, std::int64_t m, std::int64_t n) {
    const std::int64_t k = std::min(m, n);
    const auto part = [&](std::int64_t begin, std::int64_t rows, std::int64_t columns) {
      Shape shape = packed.shape();
      shape[packed.rank() - 1] = rows;
      shape.push_back(columns);
      return reshape(slice(packed, -1, begin, begin + rows * columns), shape);
    };
    return {part(0, m, k), squeeze(part(m * k, 1, k), {-2}), part(m * k + k, k, n)};
  }
};

/// With E[i, j] = s[j]^2 - s[i]^2 and skew(X) = X - X^T:
/// U ((skew(U^T dU) / E) S + S (skew(V^T dV) / E) + diag(dS)) V^T, and what dU and dV have outside the spaces
/// of U and V. Equal singular values, and zeros, have a gradient only where the function does not tell them
/// apart.
template <class B>
void Svd::vjp(Vjp<B>& v) const {
  const Shape& shape = v.input_meta(0).shape;
  const std::int64_t m = shape[shape.rank() - 2], n = shape.back(), k = std::min(m, n);
  const auto [u, s, vt] = parts(v.output(0), m, n);
  const auto [du, ds, dvt] = parts(v.grad(), m, n);
  const Tensor<B> ut = transpose(u, -1, -2), vectors = transpose(vt, -1, -2), dv = transpose(dvt, -1, -2);
  const Tensor<B> squares = square(s), gaps = unsqueeze(squares, -2) - unsqueeze(squares, -1);
  const auto turned = [&](const Tensor<B>& x) {  // skew(x) / E
    const Tensor<B> skew = x - transpose(x, -1, -2);
    return where(gaps == 0, 0, skew / where(gaps == 0, 1, gaps));
  };
  const Tensor<B> row = unsqueeze(s, -2), column = unsqueeze(s, -1);
  const Tensor<B> inner = turned(matmul(ut, du)) * row + column * turned(matmul(vt, dv)) +
                          unsqueeze(ds, -1) * eye(s.backend(), k, s.dtype());
  Tensor<B> da = matmul(matmul(u, inner), vt);
  const Tensor<B> reciprocals = where(s == 0, 0, 1 / where(s == 0, 1, s));
  if (m > k) da = da + matmul((du - matmul(u, matmul(ut, du))) * unsqueeze(reciprocals, -2), vt);
  if (n > k)
    da = da + matmul(u * unsqueeze(reciprocals, -2), transpose(dv - matmul(vectors, matmul(vt, dv)), -1, -2));
  v.add(0, da);
}

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::Svd& op, Ins in, Outs out);

template <class B>
struct SvdResult {
  Tensor<B> u, s, vt;
};

/// A = u diag(s) vt, reduced. Singular values descend; the largest element of each column of u is positive,
/// so that backends agree.
/// # Shapes: [..., M, N] -> u [..., M, K], s [..., K], vt [..., K, N], K = min(M, N)
template <class B>
SvdResult<B> svd(const Tensor<B>& a) {
  detail::check_matrices("svd", "a", a.meta());
  const auto [u, s, vt] = op::Svd::parts(eval(op::Svd{}, a), a.size(-2), a.size(-1));
  return {u, s, vt};
}

/// The pseudo-inverse. Singular values below `rcond` times the largest count as 0; by default rcond is
/// max(M, N) times the epsilon of the dtype.
/// # Shapes: [..., M, N] -> [..., N, M]
template <class B>
Tensor<B> pinv(const Tensor<B>& a, double rcond = -1) {
  const auto [u, s, vt] = svd(a);
  if (rcond < 0) rcond = static_cast<double>(std::max(a.size(-2), a.size(-1))) * epsilon(a.dtype());
  const Tensor<B> kept = s > max(s, {-1}, KeepDim::yes) * rcond;
  const Tensor<B> reciprocals = where(kept, 1 / where(kept, s, 1), 0);
  return matmul(transpose(vt, -1, -2) * unsqueeze(reciprocals, -2), transpose(u, -1, -2));
}

/// X that minimises |A X - B|, and |X| where several do. Matrices A must have full rank; for others use
/// matmul(pinv(a), b). A matrix of less is a ValueError that says which one of the batch.
/// # Shapes: a [..., M, N], b [..., M, K] -> [..., N, K], batch axes broadcast
template <class B>
Tensor<B> lstsq(const Tensor<B>& a, const Tensor<B>& b) {
  return detail::run_parts("lstsq", [&] {
    const auto [left, right] = detail::broadcast_matrices("lstsq", a, b);
    const auto upper = TriangularConfig{}.with_side(Side::upper);
    if (left.size(-2) >= left.size(-1)) {
      const auto [q, r] = qr(left);
      return triangular_solve(r, matmul(transpose(q, -1, -2), right), upper);
    }
    const auto [q, r] = qr(transpose(left, -1, -2));  // the shortest X lies in the space of A's rows
    return matmul(q, triangular_solve(r, right, upper.with_transposed()));
  });
}

/// Norms of matrices.
enum class MatrixNorm { frobenius, nuclear, spectral, one, infinity };

/// frobenius: the root of the sum of squares. nuclear: the sum of the singular values. spectral: the largest
/// of them. one, infinity: the largest sum of magnitudes of a column, of a row.
/// # Shapes: [..., M, N] -> [...]
template <class B>
Tensor<B> matrix_norm(const Tensor<B>& a, MatrixNorm which = MatrixNorm::frobenius) {
  detail::check_matrices("matrix_norm", "a", a.meta());
  switch (which) {
    case MatrixNorm::frobenius:
      return norm(a, 2, {-2, -1});
    case MatrixNorm::nuclear:
      return sum(svd(a).s, {-1});
    case MatrixNorm::spectral:
      return max(svd(a).s, {-1});
    case MatrixNorm::one:
      return max(sum(abs(a), {-2}), {-1});
    case MatrixNorm::infinity:
      break;
  }
  return max(sum(abs(a), {-1}), {-1});
}

}  // namespace ferrite
