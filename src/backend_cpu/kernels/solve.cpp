// solve on the CPU: A^T has its LU where A lies, because LAPACK's matrices are column-major.
#include "ferrite/ops/solve.hpp"

#include "backend_cpu/linalg/lu.hpp"
#include "backend_cpu/linalg/triangle.hpp"

namespace ferrite {

using namespace cpu;

void run(Cpu& cpu, const op::Solve& op, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    const Array b = dense(cpu, in[1]);
    Destination target(cpu, out[0], false), factors(cpu, out[1], false), order(cpu, out[2], false);
    copy_into(cpu, in[0], factors.array());
    const std::int64_t n = in[0].shape().back(), k = b.shape().back();
    for_matrices(op.type_name, detail::batch_of(in[0].shape()), n, "singular", [&](std::int64_t i) {
      MatrixMap<T> lu(factors.array().data<T>() + i * n * n, n, n),
          x(target.array().data<T>() + i * n * k, n, k);
      std::int64_t* const rows = order.array().data<std::int64_t>() + i * n;
      factorize_columns(lu.data(), n, n, rows);
      if ((lu.diagonal().array() == 0).any()) return false;
      RowMatrix<T> y = ConstMatrixMap<T>(b.data<T>() + i * n * k, n, k);
      solve_triangle<T>({.lower = true}, lu.data(), MatrixMap<T>(y.data(), n, k));
      solve_triangle<T>({.lower = false, .transposed = false, .unit_diagonal = true}, lu.data(),
                        MatrixMap<T>(y.data(), n, k));
      for (std::int64_t row = 0; row < n; ++row) x.row(rows[row]) = y.row(row);
      return true;
    });
    target.commit();
    factors.commit();
    order.commit();
  });
}

}  // namespace ferrite
