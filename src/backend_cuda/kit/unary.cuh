// Kernels of the unary functions for one element type.
#pragma once

#include <array>

#include "backend_cuda/kit/functions.cuh"
#include "backend_cuda/kit/kernel_tables.hpp"

namespace ferrite::cuda {

/// Floats have a dense kernel for each function; integers one for all.
template <class H, UnaryFn fn>
constexpr Kernels unary_kernels_of() {
  using T = DeviceType<H>;
  constexpr bool is_predicate = fn >= UnaryFn::logical_not;
  using Predicates = OneOf<UnarySet, UnaryFn::logical_not, UnaryFn::isfinite>;
  if constexpr (is_floating(dtype_of<H>)) {
    using Functions = OneOf<UnarySet, UnaryFn::neg, UnaryFn::leaky_relu>;
    if constexpr (is_predicate)
      return {dense_kernel<Only<UnarySet, fn>, bool, T>, row_kernel<Predicates, bool, T>};
    else
      return {dense_kernel<Only<UnarySet, fn>, T, T>, row_kernel<Functions, T, T>};
  } else if constexpr (is_predicate) {
    return {dense_kernel<Predicates, bool, T>, row_kernel<Predicates, bool, T>};
  } else if constexpr (fn <= UnaryFn::round && !std::is_same_v<T, bool>) {
    using Functions = OneOf<UnarySet, UnaryFn::neg, UnaryFn::round>;
    return {dense_kernel<Functions, T, T>, row_kernel<Functions, T, T>};
  } else {
    return {};
  }
}

template <class H, UnaryFn fn>
constexpr Kernels unary_backward_kernels_of() {
  using T = DeviceType<H>;
  using Functions = OneOf<UnaryBackwardSet, UnaryFn::neg, UnaryFn::isfinite>;
  return {dense_kernel<Only<UnaryBackwardSet, fn>, T, T, T>, row_kernel<Functions, T, T, T>};
}

template <class H>
Kernels unary_kernels(UnaryFn fn) {
  static constexpr auto table = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{unary_kernels_of<H, static_cast<UnaryFn>(i)>()...};
  }
  (std::make_index_sequence<op::unary_fn_count>{});
  return table[static_cast<std::size_t>(fn)];
}

template <class H>
Kernels unary_backward_kernels(UnaryFn fn) {
  static constexpr auto table = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{unary_backward_kernels_of<H, static_cast<UnaryFn>(i)>()...};
  }
  (std::make_index_sequence<op::unary_fn_count>{});
  return table[static_cast<std::size_t>(fn)];
}

template <class C>
GridKernel unary_strided() {
  return strided_kernel<OneOf<UnarySet, UnaryFn::neg, UnaryFn::isfinite>, C, 1>;
}

template <class C>
GridKernel unary_backward_strided() {
  return strided_kernel<OneOf<UnaryBackwardSet, UnaryFn::neg, UnaryFn::isfinite>, C, 2>;
}

}  // namespace ferrite::cuda
