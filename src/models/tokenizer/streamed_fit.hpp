// The exact order statistics of a table that is read in chunks. The first pass summarises the ranks, which
// gives an interval for every rank that is wanted; the second counts what lies between the intervals and
// keeps what lies in them.
#pragma once

#include <vector>

#include "ferrite/models/tokenizer/column_fit.hpp"

namespace ferrite::tokenizer {

class RankRefiner {
 public:
  /// For the ranks that the quantiles of `config` need of a column with this summary.
  RankRefiner(const RankSummary& summary, const TokenizerConfig& config);

  /// All elements of the column must come by, NaN included, in any order.
  void add(std::span<const double> values);
  /// The bins + 1 quantiles; NaN for a column without a value.
  std::vector<double> quantiles();

 private:
  /// Elements in (low, high), and how many are high itself, of which there may be very many.
  struct Interval {
    double low, high;
    bool from_start;
    std::vector<double> inside;
    std::int64_t before = 0;  // elements between the previous interval and this one
    std::int64_t equal = 0;
  };
  double at(std::int64_t rank) const;

  TokenizerConfig config_;
  std::int64_t count_;
  std::vector<double> highs_;
  std::vector<Interval> intervals_;
};

/// Counts and means of the bins, and the ranks of the quantiles, of a column that comes by in parts.
class StreamedStatistics {
 public:
  StreamedStatistics(const ColumnFit& column, std::vector<double> quantiles, const TokenizerConfig& config);

  void add(std::span<const double> values);
  /// Sets bin_counts, bin_means and, for a fit with a rank error, that error.
  void store(ColumnFit& column) const;

 private:
  TokenizerConfig config_;
  std::vector<double> edges_, quantiles_, sums_;
  std::vector<std::int64_t> counts_, finite_, below_,
      up_to_;  // below_[i]: elements < quantile i, not < i - 1
};

}  // namespace ferrite::tokenizer
