#include "ferrite/models/tokenizer/column_fit.hpp"

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::tokenizer {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Each value once, ends taken off.
std::vector<double> drop_duplicates(const std::vector<double>& quantiles, double least_distance) {
  std::vector<double> kept{quantiles[0]};
  for (std::size_t i = 1; i < quantiles.size(); ++i)
    if (quantiles[i] - quantiles[i - 1] > least_distance) kept.push_back(quantiles[i]);
  if (kept.size() <= 2) return {};
  return {kept.begin() + 1, kept.end() - 1};
}

/// A value that several quantiles share gets an edge on either side: nothing else is in its bin. That takes
/// no more edges than it had.
std::vector<double> merge_heavy(const std::vector<double>& quantiles, Closed closed) {
  const double least = quantiles.front(), greatest = quantiles.back();
  std::vector<double> edges;
  for (std::size_t i = 0, j = 0; i < quantiles.size(); i = j) {
    const double value = quantiles[i];
    while (j < quantiles.size() && quantiles[j] == value) ++j;
    const bool heavy = j - i > 1;
    if (closed == Closed::left) {
      if (value > least && (heavy || value < greatest)) edges.push_back(value);
      if (heavy && value < greatest) edges.push_back(std::nextafter(value, infinity));
    } else {
      if (heavy && value > least) edges.push_back(std::nextafter(value, -infinity));
      if (value < greatest && (heavy || value > least)) edges.push_back(value);
    }
  }
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

}  // namespace

std::string_view to_string(BinValue value) { return value == BinValue::mean ? "mean" : "midpoint"; }

double ColumnFit::largest_share() const {
  if (bin_counts.empty() || count == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(*std::max_element(bin_counts.begin(), bin_counts.end())) /
         static_cast<double>(count);
}

double ColumnFit::value_of(std::int64_t bin, BinValue value, Closed closed) const {
  if (value == BinValue::mean && bin_means.empty())
    throw ValueError("[tokenizer.inverse] bin means: the fit has none, it needs TokenizerConfig::statistics");
  const auto b = static_cast<std::size_t>(bin);
  const bool first = b == 0, last = b == edges.size();
  const double low = first ? least : edges[b - 1], high = last ? greatest : edges[b];
  if (std::isnan(low)) return low;
  double chosen = low / 2 + high / 2;
  if (value == BinValue::mean && std::isfinite(bin_means[b]))
    chosen = bin_means[b];
  else if (std::isinf(low) || std::isinf(high))
    return std::isinf(low) ? high : low;
  // Rounding may leave a bin that is a few ulps wide.
  const bool inside = closed == Closed::left ? chosen >= low && (last ? chosen <= high : chosen < high)
                                             : (first ? chosen >= low : chosen > low) && chosen <= high;
  return inside ? chosen : closed == Closed::left ? low : high;
}

std::vector<double> inner_edges(std::vector<double> quantiles, const TokenizerConfig& config) {
  if (std::isnan(quantiles[0])) return {};
  if (config.edge_precision == EdgePrecision::f32)
    for (double& q : quantiles) q = static_cast<double>(static_cast<float>(q));
  if (config.duplicates == DuplicateEdges::drop) return drop_duplicates(quantiles, config.least_distance);
  if (config.duplicates == DuplicateEdges::merge) return merge_heavy(quantiles, config.closed);
  return {quantiles.begin() + 1, quantiles.end() - 1};
}

double measured_rank_error(std::int64_t count, std::span<const std::int64_t> below,
                           std::span<const std::int64_t> up_to, const TokenizerConfig& config) {
  if (count == 0) return 0;
  const std::vector<double> levels = config.edge_levels();
  std::int64_t less = 0, not_more = 0, worst = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    less += below[i];
    not_more += up_to[i];
    const QuantilePosition place = quantile_position(config.method, levels[i], count);
    worst = std::max({worst, less - place.upper, place.lower - (not_more - 1)});
  }
  return static_cast<double>(worst) / static_cast<double>(count);
}

std::vector<double> quantiles_of(const RankSummary& summary, const TokenizerConfig& config,
                                 double* rank_error_bound) {
  std::vector<double> quantiles;
  std::int64_t worst = 0;
  for (const double level : config.edge_levels()) {
    if (summary.count() == 0) {
      quantiles.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    const QuantilePosition place = quantile_position(config.method, level, summary.count());
    const auto lower = summary.at(place.lower), upper = summary.at(place.upper);
    worst = std::max({worst, lower.error, upper.error});
    quantiles.push_back(interpolate_quantile(lower.value, upper.value, place.weight));
  }
  *rank_error_bound =
      static_cast<double>(worst) / static_cast<double>(std::max<std::int64_t>(summary.count(), 1));
  return quantiles;
}

}  // namespace ferrite::tokenizer
