// The gradients of the parameters of layer_norm and rms_norm: sums over all rows, from partial sums per
// block.
#pragma once

#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// dweight and, unless `count` is 1, dbias. Both of one length.
struct NormGradients {
  void* data[2];
  DType dtype[2];
  bool add[2];
  int count;
};

/// out[k] = the sum over p of partial[k][p], dense [count][parts][length] of f32, or f64 for f64 rows, in a
/// fixed order.
void sum_norm_partials(const Call& call, const void* partial, bool is_f64, std::int64_t parts,
                       std::int64_t length, const NormGradients& out);

/// Rows too long for the ring.
struct LongNormRows {
  const void *dy, *x;  // of `dtype`
  std::int64_t dy_stride, x_stride, rows, length;
  const void *mean, *rstd;  // no mean: rms_norm
  DType dtype;
};
/// Sums of dy times the normed x, and of dy, over slabs of rows: partial [count][parts][length].
void slab_norm_sums(const Call& call, const LongNormRows& rows, void* partial, std::int64_t parts);

}  // namespace ferrite::cuda
