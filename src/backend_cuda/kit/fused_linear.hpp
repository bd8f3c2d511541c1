// What the kernels of fused_linear take; they are instantiated in kernels/fused_linear_*.cu.
#pragma once

#include "ferrite/cuda/call.hpp"
#include "ferrite/ops/fused_linear.hpp"

namespace ferrite::cuda::fused_linear {

/// Everything is dense, and x, weight and the norm's parameters begin at multiples of 16 bytes. `inner` is a
/// multiple of the elements in 16 bytes of weights, as is the distance of two rows of weights.
template <class X, class W>
struct Args {
  const X* x;
  const W* weight;
  const X *norm_weight, *norm_bias, *bias, *residual;  // those that are not there are null
  X* y;
  std::int64_t weight_stride;
  int rows, inner, columns;
  RowNorm norm;
  Activation activation;
  float eps;
  int parts = 1;
};

inline constexpr std::int64_t most_rows = 8;

/// X and W as device types: equal, or X is float.
template <class X, class W>
void launch(const Call& call, const Args<X, W>& args);

}  // namespace ferrite::cuda::fused_linear
