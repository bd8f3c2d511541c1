// Calls of cuBLAS and cuSOLVER that several ops make, and their verdicts.
#include "backend_cuda/linalg/matrices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend_cuda/runtime/libraries.hpp"

namespace ferrite::cuda {

Array dense_copy(Cuda& cuda, const Array& x) {
  const Array copy = cuda.allocate(x.meta());
  copy_into(cuda, x, copy);
  return copy;
}

Array packed_part(const Array& packed, const Shape& batch, std::int64_t stride, std::int64_t offset,
                  std::int64_t rows, std::int64_t columns) {
  Layout layout{batch, batch, packed.layout().offset + offset};
  std::int64_t step = stride;
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    layout.strides[axis] = step;
    step *= batch[axis];
  }
  layout.shape.push_back(rows);
  layout.shape.push_back(columns);
  layout.strides.push_back(columns);
  layout.strides.push_back(1);
  return packed.with_layout(layout);
}

Array leading_rows(const Array& matrices, std::int64_t rows) {
  Layout layout = matrices.layout();
  layout.shape[layout.shape.rank() - 2] = rows;
  return matrices.with_layout(layout);
}

void refuse_capture(const Call& call) {
  if (call.context().is_capturing())
    throw BackendError(
        fmt::format("[{}] waits for the GPU to say which matrix has no result, which a CUDA "
                    "graph cannot capture: call it before or after",
                    call.op()));
}

Verdicts::Verdicts(const Call& call, std::int64_t count)
    : call_(call), count_(count), verdicts_(call, std::max<std::int64_t>(count, 1)) {
  cuda::check(
      cudaMemsetAsync(verdicts_.data(), 0, static_cast<std::size_t>(count) * sizeof(int), call.stream()),
      call.op());
}

void Verdicts::check(const Shape& batch, std::string_view what) const {
  std::vector<int> found(static_cast<std::size_t>(count_));
  call_.context().copy_to_host(found.data(), verdicts_.data(), found.size() * sizeof(int));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] < 0)
      throw BackendError(
          fmt::format("[{}] argument {} of cuSOLVER's function is wrong", call_.op(), -found[i]));
    if (found[i] > 0) detail::throw_bad_matrix(call_.op(), batch, static_cast<std::int64_t>(i), what);
  }
}

template <class T>
void solve_triangles(const Call& call, const Solver& solver, bool lower, bool transposed, bool unit_diagonal,
                     const MatrixBatch<const T>& a, const MatrixBatch<T>& x, std::int64_t n, std::int64_t k) {
  if (x.count * n * k == 0) return;
  // Column-major, our lower triangle is an upper one. One column X lies the same in both orders: op(A) X = B.
  // Several lie as X^T, with A on the right: X^T op(A)^T = B^T, which takes four times as long.
  const bool is_column = k == 1;
  const T one = 1;
  const auto side = is_column ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const auto fill = lower ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  const auto turn = transposed != is_column ? CUBLAS_OP_T : CUBLAS_OP_N;
  const auto diagonal = unit_diagonal ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  const int size = static_cast<int>(n), rows = is_column ? size : static_cast<int>(k),
            columns = is_column ? 1 : size;
  if (x.count == 1)
    return check(SolverCalls<T>::trsm(solver.triangles(), side, fill, turn, diagonal, rows, columns, &one,
                                      a.first, size, x.first, rows),
                 call.op());
  const Scratch<const T*> lefts = addresses(call, a);
  const Scratch<T*> rights = addresses(call, x);
  check(SolverCalls<T>::trsm_batched(solver.triangles(), side, fill, turn, diagonal, rows, columns, &one,
                                     lefts.data(), size, rights.data(), rows, static_cast<int>(x.count)),
        call.op());
}

template <class T>
void factorize_columns(const Call& call, const Solver& solver, const MatrixBatch<T>& a, std::int64_t m,
                       std::int64_t n, std::int64_t* order, const Verdicts& verdicts) {
  const std::int64_t k = std::min(m, n);
  const Scratch<int> swaps(call, std::max<std::int64_t>(a.count * k, 1));
  const int rows = static_cast<int>(m), columns = static_cast<int>(n);
  constexpr std::int64_t most_batched = 256;  // cuBLAS's batched LU is for small matrices
  if (k > 0 && a.count > 1 && m == n && n <= most_batched) {
    const Scratch<T*> places = addresses(call, a);
    check(SolverCalls<T>::getrf_batched(solver.triangles(), rows, places.data(), rows, swaps.data(),
                                        verdicts.data(), static_cast<int>(a.count)),
          call.op());
  } else if (k > 0 && a.count > 0) {
    int size = 0;
    check(SolverCalls<T>::getrf_size(solver.dense(), rows, columns, a.first, rows, &size), call.op());
    const Scratch<T> work(call, std::max(size, 1));
    for (std::int64_t i = 0; i < a.count; ++i)
      check(SolverCalls<T>::getrf(solver.dense(), rows, columns, a[i], rows, work.data(),
                                  swaps.data() + i * k, verdicts.at(i)),
            call.op());
  }
  order_of_swaps(call, swaps.data(), k, order, m, a.count);
}

#define FERRITE_MATRICES(T)                                                                           \
  template void solve_triangles<T>(const Call&, const Solver&, bool, bool, bool,                      \
                                   const MatrixBatch<const T>&, const MatrixBatch<T>&, std::int64_t,  \
                                   std::int64_t);                                                     \
  template void factorize_columns<T>(const Call&, const Solver&, const MatrixBatch<T>&, std::int64_t, \
                                     std::int64_t, std::int64_t*, const Verdicts&);
FERRITE_MATRICES(float)
FERRITE_MATRICES(double)
#undef FERRITE_MATRICES

}  // namespace ferrite::cuda
