// LabelBins: a distribution over the real line as probabilities of intervals.
#pragma once

#include <limits>

#include "ferrite/core/export.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/ops/bucketize.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/statistic.hpp"

namespace ferrite::pfn {

/// The `bins` - 1 borders, ascending: quantiles of Student's distribution with 4 degrees of freedom. In the
/// middle they lie as those of a normal distribution, and towards the ends wider apart.
FERRITE_API std::vector<double> bin_borders(std::int64_t bins);

/// Where each bin starts and how wide it is, and the mean of the labels in it. The first bin starts at its
/// upper border; it and the last one are as wide as their tails reach on average.
struct BinShapes {
  std::vector<double> borders;                // bins - 1
  std::vector<double> starts, widths, means;  // bins
};
FERRITE_API BinShapes bin_shapes(std::int64_t bins);

/// Intervals of standardised labels. A label is spread evenly inside its bin. In the first and the last one,
/// which have no end, it decays exponentially, on average as far from the border as the next bin is wide.
template <class B>
class LabelBins {
 public:
  LabelBins(B& backend, std::int64_t bins) : count_(bins) {
    const BinShapes shapes = bin_shapes(bins);
    borders_ = from_vector(backend, shapes.borders, {1, bins - 1});
    starts_ = cast(from_vector(backend, shapes.starts), DType::f32);
    widths_ = cast(from_vector(backend, shapes.widths), DType::f32);
    means_ = cast(from_vector(backend, shapes.means), DType::f32);
  }
  std::int64_t count() const { return count_; }

  /// The bin of each label; count() for NaN. # Shapes: z floating [...] -> i64 [...]
  Tensor<B> of(const Tensor<B>& z) const {
    return reshape(bucketize(reshape(z, {z.numel(), 1}), borders_, Closed::left, count_, DType::i64),
                   z.shape());
  }
  /// # Shapes: logits [..., bins] -> [...]
  Tensor<B> mean(const Tensor<B>& logits) const {
    return sum(softmax(cast(logits, DType::f32), -1) * means_, {-1});
  }
  Tensor<B> median(const Tensor<B>& logits) const { return quantile(logits, 0.5); }
  /// The number that a label lies below with probability `level`. # Shapes: logits [..., bins] -> [...]
  /// Throws ValueError unless 0 < level < 1.
  Tensor<B> quantile(const Tensor<B>& logits, double level) const {
    if (!(level > 0 && level < 1))
      throw ValueError("[LabelBins] quantile " + std::to_string(level) + ": must lie between 0 and 1");
    const Tensor<B> p = softmax(cast(logits, DType::f32), -1), below = cumsum(p, -1);
    const Tensor<B> bin = minimum(sum(cast(below < level, DType::i64), {-1}, KeepDim::yes), count_ - 1);
    const auto at = [&](const Tensor<B>& of_bins) {
      return squeeze(gather(expand(of_bins, p.shape()), -1, bin), {-1});
    };
    constexpr double least = std::numeric_limits<float>::min();
    const Tensor<B> share = clamp((level - at(below - p)) / maximum(at(p), least), 1e-6, 1 - 1e-6);
    const Tensor<B> flat = squeeze(bin, {-1});
    const Tensor<B> place = where(flat == 0, log(share), where(flat == count_ - 1, -log1p(-share), share));
    return at(starts_) + at(widths_) * place;
  }

 private:
  std::int64_t count_;
  Tensor<B> borders_;                  // f64 [1, bins - 1]
  Tensor<B> starts_, widths_, means_;  // f32 [bins]
};

}  // namespace ferrite::pfn
