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
  const float* scale;                                  // of the columns of weights of 8 bits, else null
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
/// Packs of 16 bytes of weights that a lane has at once, for a single row. And the length of the row that the
/// eight warps of a block have together.
constexpr int packs_of_lane(std::size_t weight_size) { return weight_size == 1 ? 2 : 3; }
constexpr std::int64_t most_inner_of_row(std::size_t weight_size) {
  return packs_of_lane(weight_size) * std::int64_t{256} * static_cast<std::int64_t>(16 / weight_size);
}

/// X and W as device types: equal, or X is float.
template <class X, class W>
void launch(const Call& call, const Args<X, W>& args);
/// One row, not longer than most_inner_of_row.
template <class X>
void launch(const Call& call, const Args<X, std::int8_t>& args);

}  // namespace ferrite::cuda::fused_linear
