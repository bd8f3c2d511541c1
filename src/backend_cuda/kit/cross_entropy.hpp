// Losses of some rows of a larger call, which softmax_cross_entropy runs at once and linear_cross_entropy in
// chunks; and how many targets a mean has.
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

/// How many targets are not ignored, and one over that; of no dimensions, f32 or f64.
struct CountedTargets {
  Array count, reciprocal;
};
/// Counts on the GPU, with results of `dtype`: nothing waits for it.
CountedTargets count_targets(const Call& call, Cuda& cuda, const Array& targets, std::int64_t ignore_index,
                             DType dtype);
/// Fills `counted` by a single launch, which is slow for hundreds of thousands of targets.
void count_in_one_block(const Call& call, const Array& targets, std::int64_t ignore_index,
                        const CountedTargets& counted);

}  // namespace ferrite::cuda
