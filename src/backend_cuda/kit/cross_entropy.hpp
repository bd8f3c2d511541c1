// Losses of some rows of a larger call: softmax_cross_entropy runs all at once, linear_cross_entropy in
// chunks.
#pragma once

#include "ferrite/cuda/call.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite::cuda {

struct LossRows {
  Array logits, targets, loss;
  Array lse = {};          // without a gradient
  Array scale = {};        // of the gradient
  Array gradient = {};     // may be the logits
  std::int64_t first = 0;  // which row of the call, whose name and rows errors speak of, is the first
};

/// Needs lse.
void run_rows(const Call& call, Cuda& cuda, const op::SoftmaxCrossEntropy& op, const LossRows& rows);
/// Needs scale and gradient.
void run_rows(const Call& call, Cuda& cuda, const op::SoftmaxCrossEntropyWithGradient& op,
              const LossRows& rows);

}  // namespace ferrite::cuda
