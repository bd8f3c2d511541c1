// Kernels of the binary functions for one element type.
#pragma once

#include <array>

#include "backend_cuda/kit/functions.cuh"
#include "backend_cuda/kit/kernel_tables.hpp"

namespace ferrite::cuda {

/// Floats have a dense kernel for each arithmetic function. Integers have one for all, and so do the
/// predicates.
template <class H, BinaryFn fn>
constexpr Kernels binary_kernels_of() {
  using T = DeviceType<H>;
  if constexpr (fn >= BinaryFn::eq) {
    using Predicates = OneOf<BinarySet, BinaryFn::eq, BinaryFn::logical_xor>;
    return {dense_kernel<Predicates, bool, T, T>, row_kernel<Predicates, bool, T, T>};
  } else if constexpr (is_floating(dtype_of<H>)) {
    using Functions = OneOf<BinarySet, BinaryFn::add, BinaryFn::atan2>;
    return {dense_kernel<Only<BinarySet, fn>, T, T, T>, row_kernel<Functions, T, T, T>};
  } else {
    using Functions = OneOf<BinarySet, BinaryFn::add, BinaryFn::remainder>;
    return {dense_kernel<Functions, T, T, T>, row_kernel<Functions, T, T, T>};
  }
}

template <class H>
Kernels binary_kernels(BinaryFn fn) {
  static constexpr auto table = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{binary_kernels_of<H, static_cast<BinaryFn>(i)>()...};
  }
  (std::make_index_sequence<op::binary_fn_count>{});
  return table[static_cast<std::size_t>(fn)];
}

template <class C>
GridKernel binary_strided() {
  return strided_kernel<OneOf<BinarySet, BinaryFn::add, BinaryFn::logical_xor>, C, 2>;
}

}  // namespace ferrite::cuda
