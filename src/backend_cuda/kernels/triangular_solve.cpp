// triangular_solve by cuBLAS.
#include "ferrite/ops/triangular_solve.hpp"

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::TriangularSolve& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  refuse_capture(call);
  const Array a = dense(cuda, in[0]);
  Destination target(cuda, out[0], false);
  copy_into(cuda, in[1], target.array());
  const Shape batch = detail::batch_of(a.shape());
  const std::int64_t count = batch.numel(), n = a.shape().back(), k = out[0].shape().back();
  visit_real(a.dtype(), [&]<class T>() {
    const Solver solver(call.context());
    if (!op.unit_diagonal) {
      const Verdicts verdicts(call, count);
      judge_diagonal<T>(call, {const_cast<T*>(a.data<T>()), count, n * n}, n, Diagonal::not_zero,
                        verdicts.data());
      verdicts.check(batch, "singular: its diagonal has a zero");
    }
    solve_triangles<T>(call, solver, op.lower, op.transposed, op.unit_diagonal, {a.data<T>(), count, n * n},
                       {target.array().data<T>(), count, n * k}, n, k);
  });
  target.commit();
  call.finish();
}

}  // namespace ferrite
