// triangular_solve on the CPU.
#include "ferrite/ops/triangular_solve.hpp"

#include "backend_cpu/linalg/triangle.hpp"

namespace ferrite {

using namespace cpu;

void run(Cpu& cpu, const op::TriangularSolve& op, Ins in, Outs out) {
  visit_real(in[0].dtype(), [&]<class T>() {
    const Array a = dense(cpu, in[0]);
    Destination target(cpu, out[0], false);
    copy_into(cpu, in[1], target.array());
    const std::int64_t n = a.shape().back(), k = out[0].shape().back();
    for_matrices(op.type_name, detail::batch_of(a.shape()), n, "singular: its diagonal has a zero",
                 [&](std::int64_t i) {
                   const ConstMatrixMap<T> m(a.data<T>() + i * n * n, n, n);
                   if (!op.unit_diagonal && (m.diagonal().array() == 0).any()) return false;
                   solve_triangle<T>(op, m.data(), MatrixMap<T>(target.array().data<T>() + i * n * k, n, k));
                   return true;
                 });
    target.commit();
  });
}

}  // namespace ferrite
