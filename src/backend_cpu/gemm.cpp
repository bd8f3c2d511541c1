// OpenBLAS for large products, Eigen for small ones, vectors and integers: below some 50^3 multiplications
// the call itself costs OpenBLAS more than Eigen needs for the product, and its gemm is slow on vectors.
#include "backend_cpu/gemm.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#if FERRITE_HAVE_OPENBLAS
#include <cblas.h>
#endif

namespace ferrite::cpu {
namespace {

template <class T, int Order>
using ConstMap =
    Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>, 0, Eigen::OuterStride<>>;

template <class T>
void eigen_gemm(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta,
                T* c, std::int64_t c_stride) {
  using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<RowMajor, 0, Eigen::OuterStride<>> result(c, m, n, Eigen::OuterStride<>(c_stride));
  if (beta == T{0} && k == 0) return static_cast<void>(result.setZero());
  const auto multiply = [&](const auto& x, const auto& y) {
    if (beta == T{0}) {
      result.noalias() = alpha * (x * y);
    } else {
      if (beta != T{1}) result *= beta;
      result.noalias() += alpha * (x * y);
    }
  };
  const auto with_b = [&](const auto& x) {
    const Eigen::OuterStride<> stride(b.stride);
    if (b.transposed)
      multiply(x, ConstMap<T, Eigen::ColMajor>(b.data, k, n, stride));
    else
      multiply(x, ConstMap<T, Eigen::RowMajor>(b.data, k, n, stride));
  };
  const Eigen::OuterStride<> stride(a.stride);
  if (a.transposed)
    with_b(ConstMap<T, Eigen::ColMajor>(a.data, m, k, stride));
  else
    with_b(ConstMap<T, Eigen::RowMajor>(a.data, m, k, stride));
}

#if FERRITE_HAVE_OPENBLAS

void blas_gemm(int m, int n, int k, float alpha, Operand<float> a, Operand<float> b, float beta, float* c,
               int c_stride) {
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, m, n, k, alpha, a.data, static_cast<int>(a.stride),
              b.data, static_cast<int>(b.stride), beta, c, c_stride);
}
void blas_gemm(int m, int n, int k, double alpha, Operand<double> a, Operand<double> b, double beta,
               double* c, int c_stride) {
  cblas_dgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, m, n, k, alpha, a.data, static_cast<int>(a.stride),
              b.data, static_cast<int>(b.stride), beta, c, c_stride);
}

/// OpenBLAS packs operands into buffers of its own and prefetches beyond their ends. Where nobody has touched
/// the pages there yet, every prefetch costs 0.2 us: a fifth of the time of a product of 256^3 on Neoverse
/// V1, most of it for 32^3. Two thin products touch what any tile of ours will use.
void touch_packing_buffers() {
  constexpr int rows = 528, columns = 800, depth = 640, thin = 16;
  const std::vector<float> zeros(columns * depth);
  std::vector<float> result(columns * thin);
  const Operand<float> wide{zeros.data(), columns}, deep{zeros.data(), depth};
  blas_gemm(thin, columns, depth, 1.0f, deep, wide, 0.0f, result.data(), columns);
  blas_gemm(rows, thin, depth, 1.0f, deep, {zeros.data(), thin}, 0.0f, result.data(), thin);
}

/// Our pool calls gemm from several threads at once; OpenBLAS's own threads would fight with it, and would
/// make results depend on their number.
void prepare_blas() {
  [[maybe_unused]] static const bool single_threaded = (openblas_set_num_threads(1), true);
  [[maybe_unused]] static thread_local const bool touched = (touch_packing_buffers(), true);
}

#endif

}  // namespace

template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c,
          std::int64_t c_stride) {
  if (m == 0 || n == 0) return;
#if FERRITE_HAVE_OPENBLAS
  if constexpr (std::is_floating_point_v<T>) {
    constexpr std::int64_t least_work = 1 << 17;
    const bool worth_a_call = m > 1 && n > 1 && k > 0 && m * n > least_work / k;
    const std::int64_t largest = std::max({m, n, k, a.stride, b.stride, c_stride});
    if (worth_a_call && largest <= std::numeric_limits<int>::max()) {
      prepare_blas();
      return blas_gemm(static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), alpha, a, b, beta, c,
                       static_cast<int>(c_stride));
    }
  }
#endif
  eigen_gemm(m, n, k, alpha, a, b, beta, c, c_stride);
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, float, Operand<float>, Operand<float>, float,
                   float*, std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, double, Operand<double>, Operand<double>, double,
                   double*, std::int64_t);
template void gemm(std::int64_t, std::int64_t, std::int64_t, std::uint64_t, Operand<std::uint64_t>,
                   Operand<std::uint64_t>, std::uint64_t, std::uint64_t*, std::int64_t);

std::string gemm_library() {
#if FERRITE_HAVE_OPENBLAS
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::string config = openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1));
#else
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
#endif
}

}  // namespace ferrite::cpu
