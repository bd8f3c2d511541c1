// The seam between ferrite's own gemm and OpenBLAS's (Products, backend/cpu.hpp).
#pragma once

#include "backend_cpu/gemm/gemm.hpp"
#include "ferrite/backend/cpu.hpp"

namespace ferrite::cpu {

/// gemm by whom `products` names; only from outside of parallel jobs. What OpenBLAS cannot do (other dtypes,
/// strides in both directions), or where it is not installed, is ferrite's own.
template <class T>
void multiply(Products products, Wide<T> alpha, const Matrix<const T>& a, const Matrix<const T>& b,
              const Matrix<T>& c, bool add, const TileFunction<T>& done = {});

/// One of a batch: c = a b.
template <class T>
struct Product {
  Matrix<const T> a, b;
  Matrix<T> c;
};

/// c = a b, or c += a b, for every product of a batch; at(i) gives the one in place i. All have the same
/// extents and strides. Threads share the batch if it has a product for each of them, or if the products are
/// too small to be shared.
template <class T>
void multiply_batch(Products products, std::int64_t count, const std::function<Product<T>(std::int64_t)>& at,
                    bool add);

}  // namespace ferrite::cpu
