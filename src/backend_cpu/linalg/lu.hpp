// LU of one matrix for lu and solve: by Eigen, and by LAPACK for large ones.
#pragma once

#include <Eigen/LU>
#include <numeric>
#include <utility>
#include <vector>

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/matrices.hpp"

namespace ferrite::cpu {

/// order[i] is the row that a sequence of swaps, row i with row swaps[i], moves to place i.
inline void order_of_swaps(const std::vector<int>& swaps, std::int64_t rows, std::int64_t* order) {
  std::iota(order, order + rows, std::int64_t{0});
  for (std::size_t i = 0; i < swaps.size(); ++i) std::swap(order[i], order[swaps[i]]);
}

/// The column-major a [m, n] becomes L and U; order[i] is the row of A that is row i of L U.
template <class T>
void factorize_columns(T* a, std::int64_t m, std::int64_t n, std::int64_t* order) {
  std::vector<int> swaps(static_cast<std::size_t>(std::min(m, n)));
  const auto rows = static_cast<int>(m), columns = static_cast<int>(n);
  if (const Lapack<T>* const lapack = std::min(m, n) < least_for_lapack ? nullptr : Lapack<T>::get()) {
    lapack->getrf(rows, columns, a, swaps.data());
    for (int& row : swaps) --row;  // Fortran counts from 1
  } else if (!swaps.empty()) {
    int count = 0;
    Eigen::internal::partial_lu_impl<T, Eigen::ColMajor, int>::blocked_lu(rows, columns, a, rows,
                                                                          swaps.data(), count);
  }
  order_of_swaps(swaps, m, order);
}

}  // namespace ferrite::cpu
