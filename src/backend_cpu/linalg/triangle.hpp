// Substitution in one triangle, for triangular_solve and solve: by Eigen, and by OpenBLAS for large ones.
#pragma once

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/matrices.hpp"
#include "ferrite/ops/triangular_solve.hpp"

namespace ferrite::cpu {

/// x [n, k] holds B and becomes X, for a row-major a [n, n].
template <class T>
void solve_triangle(const op::TriangularSolve& op, const T* a, MatrixMap<T> x) {
  const auto n = x.rows(), k = x.cols();
  constexpr Eigen::Index least_columns = 8;  // of X; fewer are faster by Eigen
  if (n >= least_for_lapack && k >= least_columns) {
    if (const Lapack<T>* const lapack = Lapack<T>::get())
      return lapack->trsm(op.lower, op.transposed, op.unit_diagonal, static_cast<int>(n), static_cast<int>(k),
                          a, x.data());
  }
  const auto in_place = [&]<int mode>(const auto& matrix) {
    if (op.unit_diagonal)
      matrix.template triangularView<mode | Eigen::UnitDiag>().solveInPlace(x);
    else
      matrix.template triangularView<mode>().solveInPlace(x);
  };
  const ConstMatrixMap<T> m(a, n, n);
  if (op.transposed && op.lower)
    in_place.template operator()<Eigen::Upper>(m.transpose());
  else if (op.transposed)
    in_place.template operator()<Eigen::Lower>(m.transpose());
  else if (op.lower)
    in_place.template operator()<Eigen::Lower>(m);
  else
    in_place.template operator()<Eigen::Upper>(m);
}

}  // namespace ferrite::cpu
