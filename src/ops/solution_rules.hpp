// The shape rule of the ops that solve A X = B.
#pragma once

#include "ferrite/ops/host_matrices.hpp"

namespace ferrite::op {

/// A [..., N, N] and B [..., N, K] of the same batch axes and dtype; X is like B.
inline Meta infer_solution(std::string_view op, const Meta& a, const Meta& b) {
  detail::check_square(op, "a", a);
  detail::check_matrices(op, "b", b);
  detail::check_dtype(op, "b", b.dtype, a.dtype);
  detail::check_shape(op, "b", b.shape, detail::with_matrix(a.shape, a.shape.back(), b.shape.back()));
  return b;
}

}  // namespace ferrite::op
