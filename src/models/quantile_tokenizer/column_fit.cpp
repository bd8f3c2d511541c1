#include "ferrite/models/quantile_tokenizer/column_fit.hpp"

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::quantile_tokenizer {

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

/// Whether drop_duplicates leaves a value that several quantiles share in one bin with another such value, or
/// all values in one.
bool merges_values(const std::vector<double>& quantiles, const TokenizerConfig& config) {
  std::vector<int> repeats{1};
  for (std::size_t i = 1; i < quantiles.size(); ++i)
    if (quantiles[i] - quantiles[i - 1] > config.least_distance)
      repeats.push_back(1);
    else
      ++repeats.back();
  if (config.closed == Closed::left) std::reverse(repeats.begin(), repeats.end());
  return repeats.size() == 2 || (repeats.size() > 2 && repeats[0] > 1 && repeats[1] > 1);
}

/// A value that several quantiles share gets an edge on either side, so nothing else is in its bin. This
/// takes no more edges than before.
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

BinRange ColumnFit::bin_range(std::int64_t bin, Closed closed) const {
  const auto b = static_cast<std::size_t>(bin);
  const bool first = b == 0, last = b == edges.size();
  double low = first ? least : edges[b - 1], high = last ? greatest : edges[b];
  if (!first && closed == Closed::right) low = std::nextafter(low, infinity);
  if (!last && closed == Closed::left) high = std::nextafter(high, -infinity);
  // Edges that were rounded to f32 may lie outside the column.
  if (first && !last) low = std::min(low, high);
  if (last && !first) high = std::max(low, high);
  return {low, high};
}

double ColumnFit::value_of(std::int64_t bin, BinValue value, Closed closed) const {
  if (value == BinValue::mean && bin_means.empty())
    throw ValueError("[tokenizer.inverse] bin means: the fit has none, it needs TokenizerConfig::statistics");
  const auto b = static_cast<std::size_t>(bin);
  const auto [low, high] = bin_range(bin, closed);
  if (std::isnan(low)) return low;
  if (low > high) return closed == Closed::left ? low : high;
  if (value == BinValue::mean && std::isfinite(bin_means[b])) return std::clamp(bin_means[b], low, high);
  if (std::isinf(low)) return low < 0 && high == infinity ? 0 : high;
  if (std::isinf(high)) return low;
  const double from = b == 0 ? low : edges[b - 1], to = b == edges.size() ? high : edges[b];
  return std::clamp(from / 2 + to / 2, low, high);
}

void set_edges(ColumnFit& column, std::vector<double> quantiles, const TokenizerConfig& config) {
  column.least = quantiles.front();
  column.greatest = quantiles.back();
  if (std::isnan(column.least)) return;
  if (config.edge_precision == EdgePrecision::f32)
    for (double& q : quantiles) q = static_cast<double>(static_cast<float>(q));
  if (config.duplicates == DuplicateEdges::drop) {
    column.edges = drop_duplicates(quantiles, config.least_distance);
    column.merged = merges_values(quantiles, config);
  } else if (config.duplicates == DuplicateEdges::merge) {
    column.edges = merge_heavy(quantiles, config.closed);
  } else {
    column.edges.assign(quantiles.begin() + 1, quantiles.end() - 1);
  }
}

}  // namespace ferrite::quantile_tokenizer
