// gemm: the product of two matrices of any strides, on the thread pool. Every sum of products is added in an
// order that depends only on the inner extent: neither threads nor tiles change a bit of the result.
#pragma once

#include <cstdint>
#include <functional>

#include "backend_cpu/gemm/matrix.hpp"

namespace ferrite::cpu {

/// Called for each finished tile of a result, which begins at (row, column), by the thread that has it in its
/// cache.
template <class T>
using TileFunction = std::function<void(const Matrix<T>& tile, std::int64_t row, std::int64_t column)>;

/// c = alpha a b, or c += alpha a b, for a [m, k], b [k, n], c [m, n], of which any may be empty; c is not
/// read unless `add`. T is a dtype other than bool; products are summed in Wide<T> and rounded to T once.
/// Inside a parallel job it runs on the calling thread.
template <class T>
void gemm(Wide<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, bool add,
          const TileFunction<T>& done = {});

}  // namespace ferrite::cpu
