// Mixtures of distributions over bins: their means, and their quantiles by bisection.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/pfn/label_bins.hpp"
#include "ferrite/models/pfn/regressor.hpp"

namespace ferrite::pfn {

namespace {

/// One row of one part.
class RowDistribution {
 public:
  RowDistribution(const BinShapes& shapes, const LabelDistributions::Part& part, std::span<const double> p)
      : shapes_(shapes), part_(part), p_(p), below_(p.size() + 1) {
    for (std::size_t i = 0; i < p.size(); ++i) below_[i + 1] = below_[i] + p[i];
  }
  double quantile(double level) const {
    const auto found = std::lower_bound(below_.begin() + 1, below_.end(), level);
    const std::size_t last = p_.size() - 1;
    const std::size_t bin = std::min(static_cast<std::size_t>(found - below_.begin() - 1), last);
    // As LabelBins has it: an end without probability must not become infinite.
    const double share = std::clamp((level - below_[bin]) / std::max(p_[bin], 1e-300), 1e-6, 1 - 1e-6);
    const double place = bin == 0 ? std::log(share) : bin == last ? -std::log1p(-share) : share;
    return part_.centre + part_.spread * (shapes_.starts[bin] + shapes_.widths[bin] * place);
  }
  /// The probability of labels up to y.
  double up_to(double y) const {
    if (!(part_.spread > 0)) return y >= part_.centre ? 1 : 0;
    const double z = (y - part_.centre) / part_.spread;
    const auto found = std::lower_bound(shapes_.borders.begin(), shapes_.borders.end(), z);
    const auto bin = static_cast<std::size_t>(found - shapes_.borders.begin());
    const double place = (z - shapes_.starts[bin]) / shapes_.widths[bin];
    const double share = bin == 0 ? std::exp(place) : bin == p_.size() - 1 ? -std::expm1(-place) : place;
    return below_[bin] + p_[bin] * share;
  }

 private:
  const BinShapes& shapes_;
  const LabelDistributions::Part& part_;
  std::span<const double> p_;
  std::vector<double> below_;
};

}  // namespace

LabelDistributions::LabelDistributions(std::int64_t rows, std::int64_t bins, std::vector<Part> parts)
    : rows_(rows), bins_(bins), parts_(std::move(parts)) {
  if (parts_.empty()) throw ValueError("[label_distributions] no parts: at least one is needed");
  for (const Part& part : parts_)
    if (static_cast<std::int64_t>(part.probabilities.size()) != rows * bins)
      throw ValueError(fmt::format("[label_distributions] {} probabilities: {} rows of {} bins need {}",
                                   part.probabilities.size(), rows, bins, rows * bins));
}

std::vector<double> LabelDistributions::mean() const {
  const BinShapes shapes = bin_shapes(bins_);
  std::vector<double> out(static_cast<std::size_t>(rows_));
  for (const Part& part : parts_)
    for (std::size_t r = 0; r < out.size(); ++r) {
      const double* const p = part.probabilities.data() + r * static_cast<std::size_t>(bins_);
      double place = 0;
      for (std::size_t i = 0; i < shapes.means.size(); ++i) place += p[i] * shapes.means[i];
      out[r] += part.weight * (part.centre + part.spread * place);
    }
  return out;
}

std::vector<double> LabelDistributions::quantile(double level) const {
  if (!(level > 0 && level < 1))
    throw ValueError(fmt::format("[label_distributions] quantile {}: must lie between 0 and 1", level));
  const BinShapes shapes = bin_shapes(bins_);
  const auto width = static_cast<std::size_t>(bins_);
  std::vector<double> out(static_cast<std::size_t>(rows_));
  parallel_ranges(rows_, 64, [&](std::int64_t begin, std::int64_t end) {
    for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
      std::vector<RowDistribution> row;
      for (const Part& part : parts_)
        row.emplace_back(shapes, part, std::span(part.probabilities).subspan(r * width, width));
      // The mixture's lies between those of the parts.
      double low = row[0].quantile(level), high = low;
      for (const RowDistribution& part : row) {
        low = std::min(low, part.quantile(level));
        high = std::max(high, part.quantile(level));
      }
      for (;;) {
        const double middle = low / 2 + high / 2;
        if (!(middle > low && middle < high)) break;
        double up_to = 0;
        for (std::size_t i = 0; i < row.size(); ++i) up_to += parts_[i].weight * row[i].up_to(middle);
        (up_to < level ? low : high) = middle;
      }
      out[r] = high;
    }
  });
  return out;
}

}  // namespace ferrite::pfn
