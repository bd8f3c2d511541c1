// A warp for each matrix, in shared memory; a lane for each row.
#include "backend_cuda/linalg/small_cholesky.hpp"

namespace ferrite::cuda {
namespace {

constexpr int cholesky_warps = 4;

template <class T>
__global__ void small_cholesky_kernel(MatrixBatch<const T> given, MatrixBatch<T> result, int n,
                                      int* verdicts) {
  __shared__ T tiles[cholesky_warps][warp_threads][warp_threads + 1];
  const int lane = threadIdx.x % warp_threads, own = threadIdx.x / warp_threads;
  const std::int64_t matrix = std::int64_t{blockIdx.x} * cholesky_warps + own;
  if (matrix >= given.count) return;
  auto& l = tiles[own];
  for (int i = lane; i < n * n; i += warp_threads) l[i / n][i % n] = given[matrix][i];
  __syncwarp();
  bool good = true;
  for (int j = 0; j < n; ++j) {
    T rest = lane >= j && lane < n ? l[lane][j] : T(0);
    if (lane >= j && lane < n)
      for (int k = 0; k < j; ++k) rest -= l[lane][k] * l[j][k];
    const T square = __shfl_sync(0xffffffffu, rest, j);
    good = good && square > T(0) && ::isfinite(square);
    const T root = ::sqrt(square);
    __syncwarp();
    if (lane < n) l[lane][j] = lane < j ? T(0) : lane == j ? root : rest / root;
    __syncwarp();
  }
  for (int i = lane; i < n * n; i += warp_threads) result[matrix][i] = l[i / n][i % n];
  if (lane == 0 && !good) verdicts[matrix] = 1;
}

}  // namespace

template <class T>
void small_cholesky(const Call& call, const MatrixBatch<const T>& a, const MatrixBatch<T>& l, std::int64_t n,
                    int* verdicts) {
  const auto blocks = static_cast<unsigned>((a.count + cholesky_warps - 1) / cholesky_warps);
  small_cholesky_kernel<<<blocks, cholesky_warps * warp_threads, 0, call.stream()>>>(
      a, l, static_cast<int>(n), verdicts);
}

template void small_cholesky<float>(const Call&, const MatrixBatch<const float>&, const MatrixBatch<float>&,
                                    std::int64_t, int*);
template void small_cholesky<double>(const Call&, const MatrixBatch<const double>&,
                                     const MatrixBatch<double>&, std::int64_t, int*);

}  // namespace ferrite::cuda
