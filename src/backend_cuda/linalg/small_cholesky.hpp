// cholesky of many small matrices at once, with all that is around it in one kernel.
#pragma once

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite::cuda {

inline constexpr std::int64_t most_small_cholesky = 32;

/// Row-major a [n, n] to its factor, with zeros above the diagonal. Verdicts of matrices that are not
/// positive definite become 1.
template <class T>
void small_cholesky(const Call& call, const MatrixBatch<const T>& a, const MatrixBatch<T>& l, std::int64_t n,
                    int* verdicts);

}  // namespace ferrite::cuda
