// Householder reflections in shared memory: a block for each matrix, a warp for each column.
#include "backend_cuda/linalg/small_qr.hpp"

#include <algorithm>

#include "backend_cuda/kit/shared_memory.hpp"

namespace ferrite::cuda {
namespace {

constexpr int qr_warps = 4, qr_block = warp_threads * qr_warps;

std::int64_t elements(std::int64_t m, std::int64_t n) {
  const std::int64_t k = std::min(m, n);
  return m * n + m * k + k + 1;
}

template <class T>
__device__ T sum_of_warp(T x) {
  for (int step = warp_threads / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

template <class T>
__device__ T max_of_warp(T x) {
  for (int step = warp_threads / 2; step > 0; step /= 2) x = fmax(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

/// x -= tau v (v^T x) for one column x of m elements, with v = (1, v[j + 1], ...) from row j on.
template <class T>
__device__ void reflect(T* x, const T* v, T tau, int j, int m, int lane) {
  T dot = 0;
  for (int i = j + 1 + lane; i < m; i += warp_threads) dot += v[i] * x[i];
  const T change = tau * (sum_of_warp(dot) + x[j]);
  __syncwarp();
  for (int i = j + 1 + lane; i < m; i += warp_threads) x[i] -= change * v[i];
  if (lane == 0) x[j] -= change;
}

template <class T>
__global__ void small_qr_kernel(const T* given, T* packed, int m, int n, int k) {
  extern __shared__ double shared[];
  T* const a = reinterpret_cast<T*>(shared);  // [m, n], column-major
  T* const q = a + m * n;                     // [m, k], column-major
  T* const taus = q + m * k;
  T* const scale = taus + k;
  const int lane = threadIdx.x % warp_threads, own = threadIdx.x / warp_threads;
  given += std::int64_t{blockIdx.x} * m * n;
  packed += std::int64_t{blockIdx.x} * (m + n) * k;
  for (int i = threadIdx.x; i < m * n; i += qr_block) a[i % n * m + i / n] = given[i];
  for (int i = threadIdx.x; i < m * k; i += qr_block) q[i] = i % m == i / m ? T(1) : T(0);
  __syncthreads();
  if (own == 0) {  // squares of scaled elements stay in range
    T largest = 0;
    for (int i = lane; i < m * n; i += warp_threads) largest = fmax(largest, fabs(a[i]));
    largest = max_of_warp(largest);
    if (lane == 0) scale[0] = largest > T(0) && ::isfinite(largest) ? scalbn(T(1), ilogb(largest)) : T(1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < m * n; i += qr_block) a[i] /= scale[0];
  __syncthreads();
  for (int j = 0; j < k; ++j) {
    T* const v = a + j * m;
    if (own == 0) {
      // A column may be tiny beside the others: its squares are taken relative to its largest element.
      T largest = 0;
      for (int i = j + 1 + lane; i < m; i += warp_threads) largest = fmax(largest, fabs(v[i]));
      largest = max_of_warp(largest);
      T square = 0;
      for (int i = j + 1 + lane; i < m && largest > T(0); i += warp_threads)
        square += (v[i] / largest) * (v[i] / largest);
      const T alpha = v[j], below = largest * ::sqrt(sum_of_warp(square));
      const T beta = below == T(0) ? alpha : -copysign(hypot(alpha, below), alpha);
      __syncwarp();
      for (int i = j + 1 + lane; i < m; i += warp_threads)
        v[i] = below == T(0) ? T(0) : v[i] / (alpha - beta);
      if (lane == 0) {
        taus[j] = below == T(0) ? T(0) : (beta - alpha) / beta;
        v[j] = beta;
      }
    }
    __syncthreads();
    for (int column = j + 1 + own; column < n; column += qr_warps)
      reflect(a + column * m, v, taus[j], j, m, lane);
    __syncthreads();
  }
  for (int j = k - 1; j >= 0; --j) {
    for (int column = j + own; column < k; column += qr_warps)
      reflect(q + column * m, a + j * m, taus[j], j, m, lane);
    __syncthreads();
  }
  const auto sign = [&](int i) { return a[i * m + i] < T(0) ? T(-1) : T(1); };
  for (int i = threadIdx.x; i < m * k; i += qr_block) packed[i] = sign(i % k) * q[i % k * m + i / k];
  for (int i = threadIdx.x; i < k * n; i += qr_block) {
    const int row = i / n, column = i % n;
    packed[m * k + i] = column < row ? T(0) : sign(row) * a[column * m + row] * scale[0];
  }
}

}  // namespace

template <class T>
bool fits_small_qr(const Call& call, std::int64_t m, std::int64_t n) {
  const auto most = static_cast<std::int64_t>(call.properties().sharedMemPerBlockOptin / sizeof(T));
  return m <= most && n <= most && elements(m, n) <= most;
}

template <class T>
void small_qr(const Call& call, const MatrixBatch<const T>& a, const MatrixBatch<T>& packed, std::int64_t m,
              std::int64_t n) {
  const auto bytes = static_cast<std::size_t>(elements(m, n)) * sizeof(T);
  if (bytes > 48 << 10) allow_all_shared_memory(call, reinterpret_cast<const void*>(small_qr_kernel<T>));
  small_qr_kernel<<<static_cast<unsigned>(a.count), qr_block, bytes, call.stream()>>>(
      a.first, packed.first, static_cast<int>(m), static_cast<int>(n), static_cast<int>(std::min(m, n)));
}

#define FERRITE_SMALL_QR(T)                                                                                \
  template bool fits_small_qr<T>(const Call&, std::int64_t, std::int64_t);                                 \
  template void small_qr<T>(const Call&, const MatrixBatch<const T>&, const MatrixBatch<T>&, std::int64_t, \
                            std::int64_t);
FERRITE_SMALL_QR(float)
FERRITE_SMALL_QR(double)
#undef FERRITE_SMALL_QR

}  // namespace ferrite::cuda
