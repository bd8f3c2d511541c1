// solve by cuSOLVER and cuBLAS: the LU of A^T, in place, and two substitutions.
#include "ferrite/ops/solve.hpp"

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::Solve& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  refuse_capture(call);
  const Shape batch = detail::batch_of(in[0].shape());
  const std::int64_t count = batch.numel(), n = in[0].shape().back(), k = in[1].shape().back();
  Destination target(cuda, out[0], false), factors(cuda, out[1], false), order(cuda, out[2], false);
  copy_into(cuda, in[0], factors.array());
  const Array y = dense_copy(cuda, in[1]);
  visit_real(in[0].dtype(), [&]<class T>() {
    const Verdicts verdicts(call, count);
    const Solver solver(call.context());
    const MatrixBatch<T> lu{factors.array().data<T>(), count, n * n}, right{y.data<T>(), count, n * k};
    std::int64_t* const rows = order.array().data<std::int64_t>();
    factorize_columns(call, solver, lu, n, n, rows, verdicts);
    verdicts.check(batch, "singular");
    const MatrixBatch<const T> triangle{lu.first, count, n * n};
    solve_triangles(call, solver, true, false, false, triangle, right, n, k);
    solve_triangles(call, solver, false, false, true, triangle, right, n, k);
    place_rows(call, right.first, rows, target.array().data<T>(), n, k, count);
  });
  target.commit();
  factors.commit();
  order.commit();
  call.finish();
}

}  // namespace ferrite
