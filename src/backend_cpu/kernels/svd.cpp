// svd on the CPU: by LAPACK where there is one and the matrix is not small, else by one-sided Jacobi
// rotations. Eigen's decomposition takes a minute to compile.
#include "ferrite/ops/svd.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/matrices.hpp"

namespace ferrite {

using namespace cpu;

namespace {

constexpr std::int64_t least_for_gesdd = 4;

template <class T>
using Column = Eigen::Matrix<T, Eigen::Dynamic, 1>;
template <class T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

/// Rotates pairs of columns of w until all are orthogonal; v collects the rotations.
template <class T>
void orthogonalize(Columns<T>& w, Columns<T>& v) {
  constexpr int most_sweeps = 40;
  const T least = std::numeric_limits<T>::epsilon();
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool rotated = false;
    for (Eigen::Index p = 0; p < w.cols(); ++p) {
      for (Eigen::Index q = p + 1; q < w.cols(); ++q) {
        const T alpha = w.col(p).squaredNorm(), beta = w.col(q).squaredNorm(), gamma = w.col(p).dot(w.col(q));
        if (!(std::abs(gamma) > least * std::sqrt(alpha) * std::sqrt(beta))) continue;
        rotated = true;
        const T zeta = (beta - alpha) / (2 * gamma);
        const T t = std::copysign(1 / (std::abs(zeta) + std::hypot(zeta, T{1})), zeta);
        const T c = 1 / std::hypot(t, T{1}), s = t * c;
        const auto turn = [&](Columns<T>& x) {
          const Column<T> old = x.col(p);
          x.col(p) = c * old - s * x.col(q);
          x.col(q) = s * old + c * x.col(q);
        };
        turn(w);
        turn(v);
      }
    }
    if (!rotated) return;
  }
}

/// A unit column that is orthogonal to the first `count` columns of u.
template <class T>
Column<T> another_column(const Columns<T>& u, Eigen::Index count) {
  for (Eigen::Index axis = 0;; ++axis) {
    Column<T> x = Column<T>::Unit(u.rows(), axis);
    for (int pass = 0; pass < 2; ++pass) x -= u.leftCols(count) * (u.leftCols(count).transpose() * x);
    if (x.norm() > T{0.1} / std::sqrt(static_cast<T>(u.rows()))) return x.normalized();
  }
}

/// For a tall or square a: u, s and v of a = u diag(s) v^T.
template <class T>
void rotate_to_svd(Columns<T> w, Columns<T>& u, T* s, Columns<T>& v) {
  const Eigen::Index k = w.cols();
  const T scale = detail::power_of_two_above(w.data(), w.size());
  w /= scale;
  Columns<T> turned = Columns<T>::Identity(k, k);
  orthogonalize(w, turned);
  const Column<T> norms = w.colwise().norm();
  std::vector<Eigen::Index> order(static_cast<std::size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return norms[i] > norms[j]; });
  u.resize(w.rows(), k);
  v.resize(k, k);
  for (Eigen::Index j = 0; j < k; ++j) {
    const Eigen::Index from = order[static_cast<std::size_t>(j)];
    s[j] = norms[from] * scale;
    v.col(j) = turned.col(from);
    u.col(j) = norms[from] > 0 ? Column<T>(w.col(from) / norms[from]) : another_column(u, j);
  }
}

/// u [m, k], s [k], vt [k, n] of a [m, n].
template <class T>
bool decompose(const ConstMatrixMap<T>& a, MatrixMap<T> u, T* s, MatrixMap<T> vt) {
  const auto m = static_cast<int>(a.rows()), n = static_cast<int>(a.cols());
  // The small ones of a batch call it side by side.
  const std::int64_t least = openblas_runs_side_by_side() ? least_for_gesdd : least_for_lapack;
  if (const Lapack<T>* const lapack = u.cols() < least ? nullptr : Lapack<T>::get()) {
    RowMatrix<T> given = a;  // LAPACK sees its transpose, V S U^T
    return lapack->gesdd(n, m, given.data(), s, vt.data(), u.data()) == 0;
  }
  Columns<T> left, right;
  if (m >= n) {
    rotate_to_svd<T>(a, left, s, right);
    u = left;
    vt = right.transpose();
  } else {
    rotate_to_svd<T>(a.transpose(), left, s, right);
    u = right;
    vt = left.transpose();
  }
  return true;
}

}  // namespace

void run(Cpu& cpu, const op::Svd& op, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    const Array a = dense(cpu, in[0]);
    Destination packed(cpu, out[0], false);
    const Shape& shape = a.shape();
    const std::int64_t m = shape[shape.rank() - 2], n = shape.back(), k = std::min(m, n);
    const std::optional<OpenBlasOnOneThread> batch_has_the_threads =
        k >= least_for_gesdd && k < least_for_lapack ? std::optional<OpenBlasOnOneThread>(std::in_place)
                                                     : std::nullopt;
    const Shape batch = detail::batch_of(shape);
    const auto source = [&](std::int64_t i) { return ConstMatrixMap<T>(a.data<T>() + i * m * n, m, n); };
    for_matrices(op.type_name, batch, k, "not finite", [&](std::int64_t i) { return source(i).allFinite(); });
    for_matrices(op.type_name, batch, k, "one whose singular values were not found", [&](std::int64_t i) {
      T* const first = packed.array().data<T>() + i * (m + 1 + n) * k;
      MatrixMap<T> u(first, m, k), vt(first + m * k + k, k, n);
      if (!decompose<T>(source(i), u, first + m * k, vt)) return false;
      detail::make_largest_positive(u.data(), m, k, [&](std::int64_t j) { vt.row(j) = -vt.row(j); });
      return true;
    });
    packed.commit();
  });
}

}  // namespace ferrite
