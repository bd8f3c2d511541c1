// Iterations on a matrix that is not finite would not end.
#pragma once

#include <algorithm>
#include <cmath>

#include "ferrite/ops/host_matrices.hpp"

namespace ferrite::op {

/// Names the first matrix of a batch that is not finite.
inline void check_finite(std::string_view op, const detail::HostMatrices& x) {
  for (std::int64_t i = 0; i < x.count; ++i)
    if (!std::all_of(x[i], x[i] + x.rows * x.columns, [](double v) { return std::isfinite(v); }))
      detail::throw_bad_matrix(op, x.batch, i, "not finite");
}

}  // namespace ferrite::op
