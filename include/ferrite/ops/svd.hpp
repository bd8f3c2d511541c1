// svd: A = U diag(S) V^T. pinv, lstsq and the matrix norms that need it.
#pragma once

#include "ferrite/ops/eigh.hpp"
#include "ferrite/ops/qr.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite {
namespace op {

/// One output, so that all parts have a gradient: the elements of U, then S, then V^T. Singular values
/// descend; the largest element of each column of U is positive.
/// # Shapes: A [..., M, N] -> [..., M K + K + K N], K = min(M, N); f32 or f64
struct FERRITE_API Svd {
  static constexpr LibraryName type_name = "svd";

  Metas infer(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  double reduction_length(MetaSpan in) const;
  /// Of U, S and V^T, for comparisons: each part is judged by its own magnitude.
  std::vector<std::int64_t> part_sizes(MetaSpan in) const;
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
    return {detail::matrix_part(packed, 0, m, k), squeeze(detail::matrix_part(packed, m * k, 1, k), {-2}),
            detail::matrix_part(packed, m * k + k, k, n)};
  }
};

/// With P and Q the skew parts of U^T dU and V^T dV: U (((P + Q) / (s[j] - s[i]) + (P - Q) / (s[j] + s[i])) /
/// 2
/// + diag(dS)) V^T, and what dU and dV have outside the spaces of U and V. Quotients by zero count as 0: that
/// is right for functions of equal singular values that do not depend on which vectors stand for them one by
/// one, such as u vt, and not for others.
template <class B>
void Svd::vjp(Vjp<B>& v) const {
  const Shape& shape = v.input_meta(0).shape;
  const std::int64_t m = shape[shape.rank() - 2], n = shape.back(), k = std::min(m, n);
  const auto [u, s, vt] = parts(v.output(0), m, n);
  const auto [du, ds, dvt] = parts(v.grad(), m, n);
  const Tensor<B> ut = transpose(u, -1, -2), vectors = transpose(vt, -1, -2), dv = transpose(dvt, -1, -2);
  const auto skew = [](const Tensor<B>& x) { return x - transpose(x, -1, -2); };
  const auto over = [](const Tensor<B>& x, const Tensor<B>& y) {
    return where(y == 0, 0, x / where(y == 0, 1, y));
  };
  const Tensor<B> p = skew(matmul(ut, du)), q = skew(matmul(vt, dv));
  const Tensor<B> row = unsqueeze(s, -2), column = unsqueeze(s, -1);
  const Tensor<B> inner = 0.5 * (over(p + q, row - column) + over(p - q, row + column)) +
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
FERRITE_API void run(Cuda&, const op::Svd& op, Ins in, Outs out);

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
  detail::check_matrices("pinv", "a", a.meta());
  if (std::min(a.size(-2), a.size(-1)) == 0)
    return zeros(a.backend(), detail::with_matrix(a.shape(), a.size(-1), a.size(-2)), a.dtype());
  const auto [u, s, vt] = detail::run_parts("pinv", [&] { return svd(a); });
  if (rcond < 0) rcond = static_cast<double>(std::max(a.size(-2), a.size(-1))) * epsilon(a.dtype());
  const Tensor<B> kept = s > max(s, {-1}, KeepDim::yes) * rcond;
  const Tensor<B> reciprocals = where(kept, 1 / where(kept, s, 1), 0);
  return matmul(transpose(vt, -1, -2) * unsqueeze(reciprocals, -2), transpose(u, -1, -2));
}

namespace detail {
/// Refuses square triangles r of matrices with `longer` rows whose diagonal has a number that could be
/// rounding.
template <class B>
void check_rank(std::string_view op, const Tensor<B>& r, std::int64_t longer) {
  if (r.shape().numel() == 0) return;
  const Tensor<B> sizes = abs(diagonal_of(r.detach()));
  const Tensor<B> small =
      sizes <= max(sizes, {-1}, KeepDim::yes) * (static_cast<double>(longer) * epsilon(r.dtype()));
  const auto found = sum(cast(small, DType::i64), {-1}).template to_vector<std::int64_t>();
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] > 0)
      throw_bad_matrix(op, batch_of(r.shape()), static_cast<std::int64_t>(i),
                       "of less than full rank: use matmul(pinv(a), b)");
}
}  // namespace detail

/// X that minimises |A X - B|, and |X| where several do. Matrices A must have full rank: another is a
/// ValueError that says which one of the batch; matmul(pinv(a), b) takes it.
/// # Shapes: a [..., M, N], b [..., M, K] -> [..., N, K], batch axes broadcast
template <class B>
Tensor<B> lstsq(const Tensor<B>& a, const Tensor<B>& b) {
  return detail::run_parts("lstsq", [&] {
    const auto [left, right] = detail::broadcast_matrices("lstsq", a, b);
    const auto upper = TriangularConfig{}.with_side(Side::upper);
    if (left.size(-2) >= left.size(-1)) {
      const auto [q, r] = qr(left);
      detail::check_rank("lstsq", r, left.size(-2));
      return triangular_solve(r, matmul(transpose(q, -1, -2), right), upper);
    }
    const auto [q, r] = qr(transpose(left, -1, -2));  // the shortest X lies in the space of A's rows
    detail::check_rank("lstsq", r, left.size(-1));
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
      return sum(detail::run_parts("matrix_norm", [&] { return svd(a); }).s, {-1});
    case MatrixNorm::spectral:
      return max(detail::run_parts("matrix_norm", [&] { return svd(a); }).s, {-1});
    case MatrixNorm::one:
      return max(sum(abs(a), {-2}), {-1});
    case MatrixNorm::infinity:
      break;
  }
  return max(sum(abs(a), {-1}), {-1});
}

}  // namespace ferrite
