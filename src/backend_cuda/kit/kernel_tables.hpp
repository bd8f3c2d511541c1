// The kernels of unary, binary and copy, by dtype. They are instantiated for the host's element types in
// kernels/unary_*.cu, kernels/binary_*.cu and kernels/copy_*.cu, a few dtypes per file, so that no file
// compiles for long.
#pragma once

#include "backend_cuda/kit/elementwise.hpp"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite::cuda {

// Typed kernels: all operands of T, results of T or bool. Backward functions only for floats.
template <class T>
Kernels unary_kernels(op::UnaryFn fn);
template <class T>
Kernels unary_backward_kernels(op::UnaryFn fn);
template <class T>
Kernels binary_kernels(op::BinaryFn fn);
/// From any dtype to T; rows only from T itself.
template <class T>
Kernels copy_kernels(DType from);

// Strided kernels: operands of any dtype, computed in C: float, double or std::int64_t (not in backwards).
template <class C>
GridKernel unary_strided();
template <class C>
GridKernel unary_backward_strided();
template <class C>
GridKernel binary_strided();

}  // namespace ferrite::cuda
