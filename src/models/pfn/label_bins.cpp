#include "ferrite/models/pfn/label_bins.hpp"

namespace ferrite::pfn {

std::vector<double> bin_borders(std::int64_t bins) {
  std::vector<double> borders;
  for (std::int64_t i = 1; i < bins; ++i) {
    // The quantile function of Student's distribution has a closed form for 4 degrees of freedom.
    const double p = static_cast<double>(i) / static_cast<double>(bins), root = 2 * std::sqrt(p * (1 - p));
    const double excess = std::cos(std::acos(std::min(root, 1.0)) / 3) / root - 1;
    borders.push_back(std::copysign(2 * std::sqrt(std::max(excess, 0.0)), p - 0.5));
  }
  return borders;
}

BinShapes bin_shapes(std::int64_t bins) {
  const std::vector<double> borders = bin_borders(bins);
  const std::size_t last = borders.size() - 1;
  std::vector<double> starts{borders[0]}, widths{borders[1] - borders[0]}, means{starts[0] - widths[0]};
  for (std::size_t i = 0; i <= last; ++i) {
    starts.push_back(borders[i]);
    widths.push_back(i < last ? borders[i + 1] - borders[i] : borders[last] - borders[last - 1]);
    means.push_back(starts.back() + (i < last ? 0.5 : 1) * widths.back());
  }
  return {borders, starts, widths, means};
}

}  // namespace ferrite::pfn
