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

}  // namespace ferrite::cpu
