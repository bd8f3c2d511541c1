// ColumnFit: what a fit knows about one numeric column, and the arithmetic from quantiles to edges, which is
// done on the host in f64 for every backend.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/models/tokenizer/config.hpp"
#include "ferrite/models/tokenizer/rank_summary.hpp"

namespace ferrite::tokenizer {

/// What stands for a bin in inverse. A bin nothing fell into has no mean: its midpoint then.
enum class BinValue : std::uint8_t { mean, midpoint };
FERRITE_API std::string_view to_string(BinValue value);

struct FERRITE_API ColumnFit {
  std::string name;
  std::int64_t count = 0;  // elements that are not NaN
  std::int64_t missing = 0;
  double least = std::numeric_limits<double>::quiet_NaN();
  double greatest = std::numeric_limits<double>::quiet_NaN();
  /// Between the bins, ascending; one less than there are bins.
  std::vector<double> edges;
  /// With TokenizerConfig::statistics: how many elements each bin holds, and the mean of the finite ones.
  std::vector<std::int64_t> bin_counts;
  std::vector<double> bin_means;
  /// Of a fit with a rank error: what is guaranteed, and what it turned out to be (absent after a merge), as
  /// shares of the count.
  double rank_error_bound = 0;
  std::optional<double> rank_error;
  RankSummary summary;

  std::int64_t bins() const { return static_cast<std::int64_t>(edges.size()) + 1; }
  bool is_constant() const { return count > 0 && least == greatest; }
  /// The largest share of the count in one bin; NaN without statistics.
  double largest_share() const;
  /// A value of the bin, whose ends belong to it as `closed` says; next to an infinity, the bin's finite end.
  /// NaN for a column that had no value. ValueError for means of a fit without statistics.
  double value_of(std::int64_t bin, BinValue value, Closed closed) const;
};

/// The bins + 1 quantiles of a column as edges between its bins, by the config's precision and policy.
FERRITE_API std::vector<double> inner_edges(std::vector<double> quantiles, const TokenizerConfig& config);

/// How far the ranks of the quantiles are from those asked for, as a share of the count. below[i] elements
/// lie below quantile i but not below the one before; up_to[i] do not lie above it but above the one before.
FERRITE_API double measured_rank_error(std::int64_t count, std::span<const std::int64_t> below,
                                       std::span<const std::int64_t> up_to, const TokenizerConfig& config);

/// The quantiles, bounds and edges of a column that is known by its summary.
FERRITE_API std::vector<double> quantiles_of(const RankSummary& summary, const TokenizerConfig& config,
                                             double* rank_error_bound);

}  // namespace ferrite::tokenizer
