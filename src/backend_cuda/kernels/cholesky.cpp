// cholesky: small matrices by a kernel of our own, others by cuSOLVER.
#include "ferrite/ops/cholesky.hpp"

#include "backend_cuda/linalg/small_cholesky.hpp"

namespace ferrite {

using namespace cuda;

namespace {

/// The factors of column-major matrices [n, n], in their lower triangles.
template <class T>
void factorize(const Call& call, const Solver& solver, const MatrixBatch<T>& l, int n,
               const Verdicts& verdicts) {
  constexpr auto triangle = CUBLAS_FILL_MODE_LOWER;  // which takes half the time of the upper one
  constexpr int most_batched = 512;
  if (l.count > 1 && n <= most_batched) {
    const Scratch<T*> places = addresses(call, l);
    return check(SolverCalls<T>::potrf_batched(solver.dense(), triangle, n, places.data(), n, verdicts.data(),
                                               static_cast<int>(l.count)),
                 call.op());
  }
  int size = 0;
  check(SolverCalls<T>::potrf_size(solver.dense(), triangle, n, l.first, n, &size), call.op());
  const Scratch<T> work(call, std::max(size, 1));
  for (std::int64_t i = 0; i < l.count; ++i)
    check(SolverCalls<T>::potrf(solver.dense(), triangle, n, l[i], n, work.data(), size, verdicts.at(i)),
          call.op());
}

}  // namespace

void run(Cuda& cuda, const op::Cholesky& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  refuse_capture(call);
  const Shape batch = detail::batch_of(in[0].shape());
  const std::int64_t count = batch.numel(), n = in[0].shape().back();
  if (count * n == 0) return call.finish();
  Destination target(cuda, out[0], false);
  const Verdicts verdicts(call, count);
  visit_real(in[0].dtype(), [&]<class T>() {
    const MatrixBatch<T> result{target.array().data<T>(), count, n * n};
    if (n <= most_small_cholesky) {
      const Array a = dense(cuda, in[0]);
      return small_cholesky<T>(call, {a.data<T>(), count, n * n}, result, n, verdicts.data());
    }
    const Array columns = dense_copy(cuda, turned(in[0]));
    factorize<T>(call, Solver(call.context()), {columns.data<T>(), count, n * n}, static_cast<int>(n),
                 verdicts);
    copy_into(cuda, turned(columns), target.array());
    clear_above(call, result, n);
    judge_diagonal(call, result, n, Diagonal::positive, verdicts.data());  // cuSOLVER says nothing of NaN
  });
  verdicts.check(batch, "not positive definite");
  target.commit();
  call.finish();
}

}  // namespace ferrite
