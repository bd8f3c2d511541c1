// What the kernels of linear algebra share: batches of dense matrices, and the name of one that cannot be
// done.
#pragma once

#include <Eigen/Core>
#include <atomic>
#include <limits>

#include "backend_cpu/linalg/lapack.hpp"
#include "backend_cpu/linalg/openblas.hpp"
#include "ferrite/cpu/rows.hpp"
#include "ferrite/ops/host_matrices.hpp"
#include "ops/matrix_arrays.hpp"

namespace ferrite::cpu {

template <class T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixMap = Eigen::Map<RowMatrix<T>>;
template <class T>
using ConstMatrixMap = Eigen::Map<const RowMatrix<T>>;

/// From this extent on, a matrix is worth the threads of LAPACK. (Eigen is faster below.) Their number
/// changes the last bits, as the contract of Products says: on one of them large matrices would be slower.
inline constexpr std::int64_t least_for_lapack = 96;

/// Calls f(i) for every matrix of a batch, side by side; large ones one after the other, for LAPACK has
/// threads of its own. f returns false for a matrix that it cannot do: the first of them is named.
template <class F>
void for_matrices(std::string_view op, const Shape& batch, std::int64_t extent, std::string_view what,
                  F&& f) {
  const std::int64_t count = batch.numel();
  std::atomic<std::int64_t> bad = std::numeric_limits<std::int64_t>::max();
  const auto try_one = [&](std::int64_t i) {
    if (f(i)) return;
    std::int64_t first = bad.load();
    while (i < first && !bad.compare_exchange_weak(first, i)) {
    }
  };
  if (extent >= least_for_lapack && has_lapack()) {
    give_openblas_our_threads();
    for (std::int64_t i = 0; i < count; ++i) try_one(i);
  } else {
    constexpr std::int64_t chunk = 1 << 15;
    const std::int64_t work = std::max<std::int64_t>(extent * extent * extent, 1);
    parallel_ranges(count, std::max<std::int64_t>(chunk / work, 1),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) try_one(i);
                    });
  }
  if (bad.load() < count) detail::throw_bad_matrix(op, batch, bad.load(), what);
}

}  // namespace ferrite::cpu
