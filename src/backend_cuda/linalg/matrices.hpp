// What the kernels of linear algebra share: batches of matrices as cuSOLVER takes them, small kernels around
// its calls, and the name of a matrix that cannot be done.
#pragma once

#include "backend_cuda/linalg/solver.hpp"
#include "ferrite/cuda/call.hpp"
#include "ops/finite_matrices.hpp"
#include "ops/matrix_arrays.hpp"

namespace ferrite::cuda {

/// Threads that a matrix or a column of the small kernels has.
inline constexpr int warp_threads = 32;

/// x in dense memory that may be overwritten.
Array dense_copy(Cuda& cuda, const Array& x);
/// The matrices [rows, columns] that begin `offset` elements after each `stride` of a dense array, with the
/// batch axes of `batch`: parts of a packed output.
Array packed_part(const Array& packed, const Shape& batch, std::int64_t stride, std::int64_t offset,
                  std::int64_t rows, std::int64_t columns);
/// The first rows of each dense matrix.
Array leading_rows(const Array& matrices, std::int64_t rows);

/// A dense batch of matrices of `stride` elements each.
template <class T>
struct MatrixBatch {
  T* first;
  std::int64_t count, stride;
  constexpr T* operator[](std::int64_t i) const { return first + i * stride; }
};

/// The address of every matrix, on the device.
template <class T>
Scratch<T*> addresses(const Call& call, const MatrixBatch<T>& batch);

/// Throws BackendError inside a capture: an op that says which matrix has no result waits for the GPU.
void refuse_capture(const Call& call);

/// One number a matrix; not 0 for one that cannot be done.
class Verdicts {
 public:
  Verdicts(const Call& call, std::int64_t count);
  int* data() const { return verdicts_.data(); }
  int* at(std::int64_t i) const { return verdicts_.data() + i; }
  /// Waits for the GPU. Throws ValueError for the first matrix that cannot be done, BackendError if a call
  /// got a wrong argument.
  void check(const Shape& batch, std::string_view what) const;

 private:
  const Call& call_;
  std::int64_t count_;
  Scratch<int> verdicts_;
};

/// Verdicts of row-major matrices [rows, columns] that are not finite become 1.
template <class T>
void judge_finite(const Call& call, const MatrixBatch<T>& batch, std::int64_t columns, op::Part part,
                  int* verdicts);
/// What the numbers on a diagonal have to be.
enum class Diagonal : std::uint8_t { not_zero, positive };
/// Verdicts of matrices [n, n] whose diagonal is something else become 1.
template <class T>
void judge_diagonal(const Call& call, const MatrixBatch<T>& batch, std::int64_t n, Diagonal must_be,
                    int* verdicts);
/// Row-major [n, n]: zeros above the diagonal.
template <class T>
void clear_above(const Call& call, const MatrixBatch<T>& batch, std::int64_t n);
/// order[i] is the row that LAPACK's swaps move to place i.
void order_of_swaps(const Call& call, const int* swaps, std::int64_t swaps_each, std::int64_t* order,
                    std::int64_t rows, std::int64_t count);
/// target[order[i], :] = source[i, :] for rows of k elements.
template <class T>
void place_rows(const Call& call, const T* source, const std::int64_t* order, T* target, std::int64_t n,
                std::int64_t k, std::int64_t count);
/// As detail::make_largest_positive, for row-major x [rows, columns]; flips with them the rows of y [columns,
/// width], if there is one.
template <class T>
void make_largest_positive(const Call& call, const MatrixBatch<T>& x, std::int64_t rows, std::int64_t columns,
                           const MatrixBatch<T>& y, std::int64_t width);
/// Row-major r [k, n] and q [m, k]: flips so that the diagonal of r has no negative number; clears r below
/// it.
template <class T>
void finish_qr(const Call& call, const MatrixBatch<T>& q, const MatrixBatch<T>& r, std::int64_t m,
               std::int64_t k, std::int64_t n);

/// X with op(A) X = B in place, row-major: a [n, n], x [n, k].
template <class T>
void solve_triangles(const Call& call, const Solver& solver, bool lower, bool transposed, bool unit_diagonal,
                     const MatrixBatch<const T>& a, const MatrixBatch<T>& x, std::int64_t n, std::int64_t k);

/// The LU of column-major matrices [m, n] in place, with the order of their rows; verdicts say which are
/// singular.
template <class T>
void factorize_columns(const Call& call, const Solver& solver, const MatrixBatch<T>& a, std::int64_t m,
                       std::int64_t n, std::int64_t* order, const Verdicts& verdicts);

}  // namespace ferrite::cuda
