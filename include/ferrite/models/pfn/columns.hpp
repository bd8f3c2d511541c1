// From the cells of tables to what a prior-fitted network reads. All of it runs on the backend, without a
// look at the numbers from the host.
#pragma once

#include <vector>
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/indexing.hpp"

namespace ferrite::pfn {

/// Where the columns of some datasets lie and how wide they spread, by their rows. Cells that are not finite
/// are missing and do not count. Nothing overflows: spreads are those of x / magnitude.
template <class B>
struct ColumnScale {
  Tensor<B> magnitude;  ///< [N, 1, C]: the largest |x|; 1 where all are 0 or missing
  Tensor<B> mean;       ///< [N, 1, C], of x / magnitude
  Tensor<B> deviation;  ///< [N, 1, C], of x / magnitude: exactly 0 for a constant column

  /// # Shapes: x [N, R, C], R at least 1
  static ColumnScale of(const Tensor<B>& x) {
    const Tensor<B> present = isfinite(x), filled = where(present, x, 0);
    const Tensor<B> largest = max(abs(filled), {1}, KeepDim::yes);
    const Tensor<B> magnitude = where(largest > 0, largest, 1);
    const Tensor<B> count = maximum(sum(cast(present, x.dtype()), {1}, KeepDim::yes), 1);
    const Tensor<B> scaled = filled / magnitude;
    const Tensor<B> mean = sum(scaled, {1}, KeepDim::yes) / count;
    const Tensor<B> squares = sum(square(where(present, scaled - mean, 0)), {1}, KeepDim::yes);
    return {magnitude, mean, sqrt(squares / count)};
  }
  /// Zero mean and unit variance; 0 for missing cells and constant columns; within [-100, 100].
  /// # Shapes: x [N, R, C] -> the same
  Tensor<B> standardise(const Tensor<B>& x) const {
    const Tensor<B> inverse = where(deviation > 0, 1 / maximum(deviation, 1e-30), 0);
    // Other rows may lie so far out that the quotient is infinite, which 0 must not be multiplied by.
    const Tensor<B> scaled = clamp(where(isfinite(x), x, 0) / magnitude, -1e20, 1e20);
    return where(isfinite(x), clamp((scaled - mean) * inverse, -100, 100), 0);
  }
  /// Standardised numbers in the units of x. # Shapes: z [N, R, C] -> the same
  Tensor<B> restore(const Tensor<B>& z) const { return (z * deviation + mean) * magnitude; }
};

/// x up to 4 deviations, from there on its logarithm: outliers stay in order, but do not drown the rest. The
/// slope is continuous.
template <class B>
Tensor<B> compressed(const Tensor<B>& x) {
  constexpr double bound = 4;
  const Tensor<B> size = abs(x);
  return sign(x) * (minimum(size, bound) + log(maximum(size, bound) / bound) * bound);
}

/// What the tokens of cells are made of: value, missing flag and category flag of the cells at the offsets.
/// # Shapes: x [N, R, C], is_category [N, C] of the same dtype -> [N, R, C, 3 offsets]
template <class B>
Tensor<B> cell_features(const ColumnScale<B>& scale, const Tensor<B>& x, const Tensor<B>& is_category,
                        const std::vector<std::int64_t>& offsets) {
  const Tensor<B> missing = cast(logical_not(isfinite(x)), x.dtype());
  const Tensor<B> category = expand(unsqueeze(is_category, 1), x.shape());
  const Tensor<B> cells = stack(std::vector{compressed(scale.standardise(x)), missing, category}, 3);
  const std::int64_t columns = x.size(2);
  std::vector<Tensor<B>> groups;
  for (const std::int64_t offset : offsets) {
    const std::int64_t start = offset % columns;
    groups.push_back(
        start == 0 ? cells : cat(std::vector{slice(cells, 2, start, columns), slice(cells, 2, 0, start)}, 2));
  }
  return groups.size() == 1 ? groups[0] : cat(groups, 3);
}

}  // namespace ferrite::pfn
