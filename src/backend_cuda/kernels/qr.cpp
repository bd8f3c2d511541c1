// qr: small matrices all at once, others by cuSOLVER on a column-major copy.
#include "ferrite/ops/qr.hpp"

#include "backend_cuda/linalg/small_qr.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::Qr& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  const Shape& shape = in[0].shape();
  const Shape batch = detail::batch_of(shape);
  const std::int64_t count = batch.numel(), m = shape[shape.rank() - 2], n = shape.back(), k = std::min(m, n);
  if (count * k == 0) return call.finish();
  Destination packed(cuda, out[0], false);
  visit_real(in[0].dtype(), [&]<class T>() {
    constexpr std::int64_t most_alone = 32;  // of one larger matrix, cuSOLVER keeps more of the GPU busy
    if (fits_small_qr<T>(call, m, n) && (count > 1 || k <= most_alone)) {
      const Array a = dense(cuda, in[0]);
      return small_qr<T>(call, {a.data<T>(), count, m * n}, {packed.array().data<T>(), count, (m + n) * k}, m,
                         n);
    }
    const Array columns = dense_copy(cuda, turned(in[0]));
    using Calls = SolverCalls<T>;
    const Solver solver(call.context());
    const MatrixBatch<T> a{columns.data<T>(), count, m * n};
    const int rows = static_cast<int>(m), width = static_cast<int>(n), size = static_cast<int>(k);
    const Scratch<T> tau(call, count * k);
    const Verdicts verdicts(call, count);
    int for_r = 0, for_q = 0;
    check(Calls::geqrf_size(solver.dense(), rows, width, a.first, rows, &for_r), call.op());
    check(Calls::orgqr_size(solver.dense(), rows, size, size, a.first, rows, tau.data(), &for_q), call.op());
    const int work_size = std::max({for_r, for_q, 1});
    const Scratch<T> work(call, work_size);
    const std::int64_t stride = (m + n) * k;
    T* const first = packed.array().data<T>();
    const auto part = [&](std::int64_t offset, std::int64_t part_rows, std::int64_t part_columns) {
      return packed_part(packed.array(), batch, stride, offset, part_rows, part_columns);
    };
    for (std::int64_t i = 0; i < count; ++i)
      check(Calls::geqrf(solver.dense(), rows, width, a[i], rows, tau.data() + i * k, work.data(), work_size,
                         verdicts.at(i)),
            call.op());
    copy_into(cuda, leading_rows(turned(columns), k), part(m * k, k, n));
    for (std::int64_t i = 0; i < count; ++i)
      check(Calls::orgqr(solver.dense(), rows, size, size, a[i], rows, tau.data() + i * k, work.data(),
                         work_size, verdicts.at(i)),
            call.op());
    copy_into(cuda, turned(leading_rows(columns, k)), part(0, m, k));
    finish_qr<T>(call, {first, count, stride}, {first + m * k, count, stride}, m, k, n);
  });
  packed.commit();
  call.finish();
}

}  // namespace ferrite
