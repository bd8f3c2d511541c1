// ColumnFit: the fit of one numeric column, and the arithmetic from quantiles to edges, which the host does
// in f64 for every backend.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "ferrite/models/quantile_tokenizer/config.hpp"

namespace ferrite::quantile_tokenizer {

/// The value that represents a bin in inverse. An empty bin has no mean: then its midpoint is used.
enum class BinValue : std::uint8_t { mean, midpoint };
FERRITE_API std::string_view to_string(BinValue value);

/// The least and the greatest f64 of a bin.
struct BinRange {
  double least, greatest;
  bool holds(double value) const { return value >= least && value <= greatest; }
};

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
  /// Different values share a bin, though at least one of them would fill a bin: DuplicateEdges::drop leaves
  /// no edge between the last two quantiles that differ (the first two for Closed::right). Not in files.
  bool merged = false;

  std::int64_t bins() const { return static_cast<std::int64_t>(edges.size()) + 1; }
  bool is_constant() const { return count > 0 && least == greatest; }
  /// The largest share of the elements in one bin; NaN without statistics.
  double largest_share() const;
  /// `closed` says which edges belong to a bin; the outer bins end where the column does. No number lies
  /// between two equal edges: then `least` is greater than `greatest`.
  BinRange bin_range(std::int64_t bin, Closed closed) const;
  /// A value that is in the bin, however means and midpoints are rounded; next to an infinity, the bin's
  /// finite end. NaN for a column without values. ValueError for means of a fit without statistics.
  double value_of(std::int64_t bin, BinValue value, Closed closed) const;
};

/// Sets `least`, `greatest`, `edges` and `merged` from the bins + 1 quantiles of the column, by the config's
/// precision and policy.
FERRITE_API void set_edges(ColumnFit& column, std::vector<double> quantiles, const TokenizerConfig& config);

}  // namespace ferrite::quantile_tokenizer
