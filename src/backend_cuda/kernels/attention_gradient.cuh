// What the kernels of attention's gradients share: their arrays, and weights from the saved log-sum-exp.
#pragma once

#include "backend_cuda/kernels/attention.cuh"

namespace ferrite::cuda::attention {

/// lse and delta (the sum of grad * o) are dense, one per query.
template <class T>
struct BackwardArrays {
  Heads<const T> grad, q, k, v, o;
  const float *lse, *delta;
  bool in_packs;  // all that are loaded as tiles: see load_rows
};
/// A result of the backward pass.
template <class T>
struct Gradient {
  Heads<T> to;
  bool in_packs, add;
};

/// The scale of the gradients of scores can wait until their products are stored; but f16 might overflow
/// before, unless the smaller values are those that are rounded.
template <class T>
__device__ __forceinline__ float early_scale(const Problem& p) {
  return std::is_same_v<T, __half> && fabsf(p.scale) < 1 ? p.scale : 1.0f;
}
template <class T>
__device__ __forceinline__ float late_scale(const Problem& p) {
  return std::is_same_v<T, __half> && fabsf(p.scale) < 1 ? 1.0f : p.scale;
}

/// 0 for a query that sees nothing, so that its weights become 0.
__device__ __forceinline__ float finite_lse(float lse) { return lse == hidden ? 0.0f : lse; }

/// The weight that belongs to a score of a query whose scores have this log-sum-exp.
__device__ __forceinline__ float weight(float score, float lse) {
  return power_of_2((score - lse) * log2_of_e);
}

/// The same of a product that no mask has touched, where `scale` and `lse` are times log2(e).
__device__ __forceinline__ float plain_weight(float product, float scale, float lse) {
  return power_of_2(fmaf(product, scale, -lse));
}

}  // namespace ferrite::cuda::attention
