// gemm: one product of two dense matrices on the calling thread. Hides which library does it; whoever wants
// several threads cuts the result into tiles and calls gemm for each (product.hpp).
#pragma once

#include <cstdint>
#include <string>

namespace ferrite::cpu {

/// A matrix that gemm can read: rows of unit stride `stride` elements apart, or its transpose.
template <class T>
struct Operand {
  const T* data;
  std::int64_t stride;
  bool transposed = false;
};

/// c = alpha a b + beta c for a [m, k], b [k, n] and row-major c [m, n] with rows `c_stride` apart. beta 0
/// overwrites c without reading it, also for k = 0. T is float, double or std::uint64_t (integers that wrap
/// around). The bits of the result depend on the extents alone.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, Operand<T> a, Operand<T> b, T beta, T* c,
          std::int64_t c_stride);

/// "OpenBLAS 0.3.21" or "Eigen 3.4.0"
std::string gemm_library();

}  // namespace ferrite::cpu
