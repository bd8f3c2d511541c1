// eigh on the CPU.
#include "ferrite/ops/eigh.hpp"

#include <Eigen/Eigenvalues>

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/matrices.hpp"
#include "ops/finite_matrices.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Writes eigenvalues and eigenvectors of the lower triangle of a [n, n] into result [n + 1, n].
template <class T>
bool diagonalize(const ConstMatrixMap<T>& a, MatrixMap<T> result) {
  const auto n = a.rows();
  if (n == 0) return true;
  using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  if (const Lapack<T>* const lapack = n < least_for_lapack ? nullptr : Lapack<T>::get()) {
    Columns vectors = a;
    if (lapack->syevd('L', static_cast<int>(n), vectors.data(), result.data()) != 0) return false;
    result.bottomRows(n) = vectors;
    return true;
  }
  const Eigen::SelfAdjointEigenSolver<Columns> solver(a);
  if (solver.info() != Eigen::Success) return false;
  result.row(0) = solver.eigenvalues();
  result.bottomRows(n) = solver.eigenvectors();
  return true;
}

}  // namespace

void run(Cpu& cpu, const op::Eigh& op, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    const Array a = dense(cpu, in[0]);
    Destination packed(cpu, out[0], false);
    const std::int64_t n = a.shape().back();
    const Shape batch = detail::batch_of(a.shape());
    const auto source = [&](std::int64_t i) { return a.data<T>() + i * n * n; };
    for_matrices(op.type_name, batch, n, "not finite",
                 [&](std::int64_t i) { return op::is_finite(source(i), n, n, op::Part::lower_triangle); });
    for_matrices(op.type_name, batch, n, "one whose eigenvalues were not found", [&](std::int64_t i) {
      MatrixMap<T> result(packed.array().data<T>() + i * (n + 1) * n, n + 1, n);
      if (!diagonalize<T>(ConstMatrixMap<T>(source(i), n, n), result)) return false;
      detail::make_largest_positive(result.data() + n, n, n);
      return true;
    });
    packed.commit();
  });
}

}  // namespace ferrite
