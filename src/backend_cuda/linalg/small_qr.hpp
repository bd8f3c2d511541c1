// QR of many small matrices at once, for which cuSOLVER has no call.
#pragma once

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite::cuda {

/// Whether matrices [m, n] and their Q fit into the shared memory of a block.
template <class T>
bool fits_small_qr(const Call& call, std::int64_t m, std::int64_t n);

/// Row-major a [m, n] to Q [m, k] and then R [k, n] in each of `packed`, without negative numbers on R's
/// diagonal.
template <class T>
void small_qr(const Call& call, const MatrixBatch<const T>& a, const MatrixBatch<T>& packed, std::int64_t m,
              std::int64_t n);

}  // namespace ferrite::cuda
