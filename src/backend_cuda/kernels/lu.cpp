// lu by cuSOLVER and cuBLAS, on a column-major copy.
#include "ferrite/ops/lu.hpp"

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::Lu& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  const Shape& shape = in[0].shape();
  const std::int64_t count = detail::batch_of(shape).numel(), m = shape[shape.rank() - 2], n = shape.back();
  const Array columns = dense_copy(cuda, turned(in[0]));
  Destination order(cuda, out[1], false);
  visit_real(in[0].dtype(), [&]<class T>() {
    const Verdicts singular(call, count);  // which have an LU too
    factorize_columns<T>(call, Solver(call.context()), {columns.data<T>(), count, m * n}, m, n,
                         order.array().data<std::int64_t>(), singular);
  });
  copy_into(cuda, turned(columns), out[0]);
  order.commit();
  call.finish();
}

}  // namespace ferrite
