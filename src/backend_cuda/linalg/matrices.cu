// Small kernels around the calls of cuSOLVER: a block for each matrix, or a warp for each column.
#include <algorithm>

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite::cuda {
namespace {

constexpr int matrix_block = 256;

unsigned blocks_for(std::int64_t work) {
  return static_cast<unsigned>((work + matrix_block - 1) / matrix_block);
}

template <class T>
__global__ void addresses_kernel(T* first, std::int64_t stride, std::int64_t count, T** out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * matrix_block + threadIdx.x;
  if (i < count) out[i] = first + i * stride;
}

/// Blocks on the grid's x axis go through one matrix; its y axis has the matrices, in turn.
template <class T>
__global__ void judge_finite_kernel(MatrixBatch<T> batch, std::int64_t columns, bool lower_triangle,
                                    int* verdicts) {
  for (std::int64_t matrix = blockIdx.y; matrix < batch.count; matrix += gridDim.y) {
    const T* const x = batch[matrix];
    bool bad = false;
    for (std::int64_t i = std::int64_t{blockIdx.x} * matrix_block + threadIdx.x; i < batch.stride;
         i += std::int64_t{gridDim.x} * matrix_block)
      bad |= !::isfinite(x[i]) && !(lower_triangle && i % columns > i / columns);
    if (bad) verdicts[matrix] = 1;
  }
}

template <class T>
__global__ void judge_diagonal_kernel(MatrixBatch<T> batch, std::int64_t n, Diagonal must_be, int* verdicts) {
  const std::int64_t i = std::int64_t{blockIdx.x} * matrix_block + threadIdx.x;
  if (i >= batch.count * n) return;
  const T value = batch[i / n][i % n * (n + 1)];
  const bool good = must_be == Diagonal::not_zero ? value != T(0) : value > T(0) && ::isfinite(value);
  if (!good) verdicts[i / n] = 1;
}

template <class T>
__global__ void clear_above_kernel(T* first, std::int64_t total, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * matrix_block + threadIdx.x;
  if (i >= total) return;
  const std::int64_t place = i % (n * n);
  if (place % n > place / n) first[i] = T(0);
}

/// One warp a matrix. Its first thread swaps, in shared memory: `order` and then the swaps.
__global__ void order_kernel(const int* swaps, int swaps_each, std::int64_t* order, int rows) {
  extern __shared__ int place[];
  int* const other = place + rows;
  for (int i = threadIdx.x; i < rows; i += warp_threads) place[i] = i;
  for (int i = threadIdx.x; i < swaps_each; i += warp_threads)
    other[i] = ::min(::max(swaps[std::int64_t{blockIdx.x} * swaps_each + i] - 1, 0),
                     rows - 1);  // LAPACK counts from 1
  __syncwarp();
  if (threadIdx.x == 0) {
    for (int i = 0; i < swaps_each; ++i) {
      const int moved = place[i];
      place[i] = place[other[i]];
      place[other[i]] = moved;
    }
  }
  __syncwarp();
  for (int i = threadIdx.x; i < rows; i += warp_threads)
    order[std::int64_t{blockIdx.x} * rows + i] = place[i];
}
/// The same for matrices that are too large for shared memory.
__global__ void long_order_kernel(const int* swaps, std::int64_t swaps_each, std::int64_t* order,
                                  std::int64_t rows) {
  std::int64_t* const mine = order + blockIdx.x * rows;
  for (std::int64_t i = threadIdx.x; i < rows; i += warp_threads) mine[i] = i;
  __syncwarp();
  if (threadIdx.x > 0) return;
  for (std::int64_t i = 0; i < swaps_each; ++i) {
    const std::int64_t other = swaps[blockIdx.x * swaps_each + i] - 1, moved = mine[i];
    mine[i] = mine[other];
    mine[other] = moved;
  }
}

template <class T>
__global__ void place_rows_kernel(const T* source, const std::int64_t* order, T* target, std::int64_t n,
                                  std::int64_t k, std::int64_t total) {
  const std::int64_t i = std::int64_t{blockIdx.x} * matrix_block + threadIdx.x;
  if (i >= total) return;
  const std::int64_t row = i / k, matrix = row / n;
  target[(matrix * n + order[row]) * k + i % k] = source[i];
}

/// A warp for each column of a matrix.
template <class T>
__global__ void make_positive_kernel(MatrixBatch<T> xs, std::int64_t rows, std::int64_t columns,
                                     MatrixBatch<T> ys, std::int64_t width) {
  const std::int64_t task = (std::int64_t{blockIdx.x} * matrix_block + threadIdx.x) / warp_threads,
                     matrix = task / columns, column = task % columns;
  if (matrix >= xs.count) return;
  const int lane = threadIdx.x % warp_threads;
  T* const x = xs[matrix];
  T largest = 0;
  for (std::int64_t i = lane; i < rows; i += warp_threads)
    largest = fmax(largest, fabs(x[i * columns + column]));
  for (int step = warp_threads / 2; step > 0; step /= 2)
    largest = fmax(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  std::int64_t first = rows;  // of those that are nearly as large
  for (std::int64_t i = lane; i < rows && first == rows; i += warp_threads)
    if (fabs(x[i * columns + column]) >= T(0.999) * largest) first = i;
  for (int step = warp_threads / 2; step > 0; step /= 2)
    first = ::min(first, __shfl_xor_sync(0xffffffffu, first, step));
  const bool flip = first < rows && x[first * columns + column] < T(0);
  __syncwarp();
  if (!flip) return;
  for (std::int64_t i = lane; i < rows; i += warp_threads) x[i * columns + column] = -x[i * columns + column];
  if (!ys.first) return;
  for (std::int64_t j = lane; j < width; j += warp_threads)
    ys[matrix][column * width + j] = -ys[matrix][column * width + j];
}

/// A warp for each row of r, which is a column of q.
template <class T>
__global__ void finish_qr_kernel(MatrixBatch<T> qs, MatrixBatch<T> rs, std::int64_t m, std::int64_t k,
                                 std::int64_t n) {
  const std::int64_t task = (std::int64_t{blockIdx.x} * matrix_block + threadIdx.x) / warp_threads,
                     matrix = task / k, row = task % k;
  if (matrix >= qs.count) return;
  const int lane = threadIdx.x % warp_threads;
  T* const r = rs[matrix] + row * n;
  const bool flip = r[row] < T(0);
  __syncwarp();
  for (std::int64_t j = lane; j < n; j += warp_threads) r[j] = j < row ? T(0) : flip ? -r[j] : r[j];
  if (!flip) return;
  for (std::int64_t i = lane; i < m; i += warp_threads) qs[matrix][i * k + row] = -qs[matrix][i * k + row];
}

}  // namespace

template <class T>
Scratch<T*> addresses(const Call& call, const MatrixBatch<T>& batch) {
  Scratch<T*> result(call, batch.count);
  if (batch.count > 0)
    addresses_kernel<<<blocks_for(batch.count), matrix_block, 0, call.stream()>>>(batch.first, batch.stride,
                                                                                  batch.count, result.data());
  return result;
}

template <class T>
void judge_finite(const Call& call, const MatrixBatch<T>& batch, std::int64_t columns, op::Part part,
                  int* verdicts) {
  if (batch.count * batch.stride == 0) return;
  constexpr unsigned most_blocks = 256;
  constexpr std::int64_t most_matrices = 65535;
  const dim3 grid(std::min(blocks_for(batch.stride), most_blocks),
                  static_cast<unsigned>(std::min(batch.count, most_matrices)));
  judge_finite_kernel<<<grid, matrix_block, 0, call.stream()>>>(batch, columns,
                                                                part == op::Part::lower_triangle, verdicts);
}
template <class T>
void judge_diagonal(const Call& call, const MatrixBatch<T>& batch, std::int64_t n, Diagonal must_be,
                    int* verdicts) {
  if (batch.count * n > 0)
    judge_diagonal_kernel<<<blocks_for(batch.count * n), matrix_block, 0, call.stream()>>>(batch, n, must_be,
                                                                                           verdicts);
}
template <class T>
void clear_above(const Call& call, const MatrixBatch<T>& batch, std::int64_t n) {
  const std::int64_t total = batch.count * n * n;
  if (total > 0)
    clear_above_kernel<<<blocks_for(total), matrix_block, 0, call.stream()>>>(batch.first, total, n);
}

void order_of_swaps(const Call& call, const int* swaps, std::int64_t swaps_each, std::int64_t* order,
                    std::int64_t rows, std::int64_t count) {
  if (count == 0 || rows == 0) return;
  constexpr std::int64_t most_shared = 48 << 10;
  const std::int64_t bytes = (rows + swaps_each) * static_cast<std::int64_t>(sizeof(int));
  const auto blocks = static_cast<unsigned>(count);
  if (bytes > most_shared)
    long_order_kernel<<<blocks, warp_threads, 0, call.stream()>>>(swaps, swaps_each, order, rows);
  else
    order_kernel<<<blocks, warp_threads, static_cast<std::size_t>(bytes), call.stream()>>>(
        swaps, static_cast<int>(swaps_each), order, static_cast<int>(rows));
}

template <class T>
void place_rows(const Call& call, const T* source, const std::int64_t* order, T* target, std::int64_t n,
                std::int64_t k, std::int64_t count) {
  const std::int64_t total = count * n * k;
  if (total > 0)
    place_rows_kernel<<<blocks_for(total), matrix_block, 0, call.stream()>>>(source, order, target, n, k,
                                                                             total);
}

template <class T>
void make_largest_positive(const Call& call, const MatrixBatch<T>& x, std::int64_t rows, std::int64_t columns,
                           const MatrixBatch<T>& y, std::int64_t width) {
  const std::int64_t work = x.count * columns * warp_threads;
  if (work > 0)
    make_positive_kernel<<<blocks_for(work), matrix_block, 0, call.stream()>>>(x, rows, columns, y, width);
}

template <class T>
void finish_qr(const Call& call, const MatrixBatch<T>& q, const MatrixBatch<T>& r, std::int64_t m,
               std::int64_t k, std::int64_t n) {
  const std::int64_t work = q.count * k * warp_threads;
  if (work > 0) finish_qr_kernel<<<blocks_for(work), matrix_block, 0, call.stream()>>>(q, r, m, k, n);
}

#define FERRITE_MATRICES(T)                                                                               \
  template Scratch<T*> addresses<T>(const Call&, const MatrixBatch<T>&);                                  \
  template Scratch<const T*> addresses<const T>(const Call&, const MatrixBatch<const T>&);                \
  template void judge_finite<T>(const Call&, const MatrixBatch<T>&, std::int64_t, op::Part, int*);        \
  template void judge_diagonal<T>(const Call&, const MatrixBatch<T>&, std::int64_t, Diagonal, int*);      \
  template void clear_above<T>(const Call&, const MatrixBatch<T>&, std::int64_t);                         \
  template void place_rows<T>(const Call&, const T*, const std::int64_t*, T*, std::int64_t, std::int64_t, \
                              std::int64_t);                                                              \
  template void make_largest_positive<T>(const Call&, const MatrixBatch<T>&, std::int64_t, std::int64_t,  \
                                         const MatrixBatch<T>&, std::int64_t);                            \
  template void finish_qr<T>(const Call&, const MatrixBatch<T>&, const MatrixBatch<T>&, std::int64_t,     \
                             std::int64_t, std::int64_t);
FERRITE_MATRICES(float)
FERRITE_MATRICES(double)
#undef FERRITE_MATRICES

}  // namespace ferrite::cuda
