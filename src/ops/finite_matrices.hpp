// Iterations on a matrix that is not finite would not end.
#pragma once

#include <cmath>

#include "ferrite/ops/host_matrices.hpp"

namespace ferrite::op {

/// What of a matrix is read.
enum class Part { whole, lower_triangle };

/// Row-major x [rows, columns].
template <class T>
bool is_finite(const T* x, std::int64_t rows, std::int64_t columns, Part part) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < (part == Part::whole ? columns : i + 1); ++j)
      if (!std::isfinite(x[i * columns + j])) return false;
  return true;
}

/// Names the first matrix of a batch that is not finite.
inline void check_finite(std::string_view op, const detail::HostMatrices& x, Part part) {
  for (std::int64_t i = 0; i < x.count; ++i)
    if (!is_finite(x[i], x.rows, x.columns, part)) detail::throw_bad_matrix(op, x.batch, i, "not finite");
}

}  // namespace ferrite::op
