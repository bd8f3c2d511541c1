// svd by cuSOLVER's rotations: small matrices all at once, others one after the other.
#include "ferrite/ops/svd.hpp"

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr std::int64_t most_batched = 32;  // rows and columns; cuSOLVER's own limit

/// Column-major a [m, n] = u diag(s) v^T with u [m, *], s [k] and v [n, *]. The batched call gives square u
/// and v, the other their first k columns.
template <class T>
void decompose(const Call& call, const Solver& solver, bool batched, const MatrixBatch<T>& a, int m, int n,
               const MatrixBatch<T>& u, const MatrixBatch<T>& s, const MatrixBatch<T>& v,
               const Verdicts& verdicts) {
  using Calls = SolverCalls<T>;
  gesvdjInfo_t options = nullptr;
  check(cusolverDnCreateGesvdjInfo(&options), call.op());
  const std::unique_ptr<gesvdjInfo, decltype(&cusolverDnDestroyGesvdjInfo)> owner(
      options, cusolverDnDestroyGesvdjInfo);
  constexpr auto vectors = CUSOLVER_EIG_MODE_VECTOR;
  constexpr int reduced = 1;
  int size = 0;
  if (batched) {
    const int count = static_cast<int>(a.count);
    check(Calls::gesvdj_batched_size(solver.dense(), vectors, m, n, a.first, m, s.first, u.first, m, v.first,
                                     n, &size, options, count),
          call.op());
    const Scratch<T> work(call, std::max(size, 1));
    return check(Calls::gesvdj_batched(solver.dense(), vectors, m, n, a.first, m, s.first, u.first, m,
                                       v.first, n, work.data(), size, verdicts.data(), options, count),
                 call.op());
  }
  check(Calls::gesvdj_size(solver.dense(), vectors, reduced, m, n, a.first, m, s.first, u.first, m, v.first,
                           n, &size, options),
        call.op());
  const Scratch<T> work(call, std::max(size, 1));
  for (std::int64_t i = 0; i < a.count; ++i)
    check(Calls::gesvdj(solver.dense(), vectors, reduced, m, n, a[i], m, s[i], u[i], m, v[i], n, work.data(),
                        size, verdicts.at(i), options),
          call.op());
}

}  // namespace

void run(Cuda& cuda, const op::Svd& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  refuse_capture(call);
  const Shape& shape = in[0].shape();
  const Shape batch = detail::batch_of(shape);
  const std::int64_t count = batch.numel(), m = shape[shape.rank() - 2], n = shape.back(), k = std::min(m, n);
  if (count * k == 0) return call.finish();
  Destination packed(cuda, out[0], false);
  const Array given = dense_copy(cuda, in[0]);
  const bool batched = count > 1 && m <= most_batched && n <= most_batched;
  // Column-major, ours is A^T = V S U^T: the rows of what cuSOLVER calls u are those of V^T, and the rows of
  // its v are the columns of U.
  const auto allocate = [&](std::int64_t rows, std::int64_t columns) {
    return cuda.allocate({detail::with_matrix(shape, rows, columns), in[0].dtype()});
  };
  const Array right = allocate(batched ? n : k, n), values = allocate(1, k),
              left = allocate(batched ? m : k, m);
  visit_real(in[0].dtype(), [&]<class T>() {
    const auto matrices = [&](const Array& x) {
      return MatrixBatch<T>{x.data<T>(), count, x.shape().numel() / count};
    };
    const Verdicts finite(call, count), found(call, count);
    judge_finite(call, matrices(given), n, op::Part::whole, finite.data());
    finite.check(batch, "not finite");
    decompose(call, Solver(call.context()), batched, matrices(given), static_cast<int>(n),
              static_cast<int>(m), matrices(right), matrices(values), matrices(left), found);
    found.check(batch, "one whose singular values were not found");
    const std::int64_t stride = (m + 1 + n) * k;
    const auto part = [&](std::int64_t offset, std::int64_t rows, std::int64_t columns) {
      return packed_part(packed.array(), batch, stride, offset, rows, columns);
    };
    copy_into(cuda, turned(leading_rows(left, k)), part(0, m, k));
    copy_into(cuda, values, part(m * k, 1, k));
    copy_into(cuda, leading_rows(right, k), part(m * k + k, k, n));
    T* const first = packed.array().data<T>();
    make_largest_positive<T>(call, {first, count, stride}, m, k, {first + m * k + k, count, stride}, n);
  });
  packed.commit();
  call.finish();
}

}  // namespace ferrite
