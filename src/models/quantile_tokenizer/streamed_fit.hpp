// The exact order statistics of a table that is read in chunks. The first pass summarises the ranks, which
// gives an interval for every wanted rank. The second counts the elements between the intervals and keeps
// those inside.
#pragma once

#include <span>
#include <vector>

#include "ferrite/io/host_tensor.hpp"
#include "ferrite/models/quantile_tokenizer/column_fit.hpp"
#include "ferrite/models/quantile_tokenizer/rank_summary.hpp"

namespace ferrite::quantile_tokenizer {

class RankRefiner {
 public:
  /// For the ranks that the quantiles of `config` need of a column with this summary.
  RankRefiner(const RankSummary& summary, const TokenizerConfig& config);

  /// All elements of the column must be added, NaN included, in any order.
  void add(std::span<const double> values);
  /// The bins + 1 quantiles; NaN for a column without a value.
  std::vector<double> quantiles();

 private:
  /// Elements in (low, high), and the number of those equal to high, which may be very large.
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

/// Counts and means of the bins of a column that arrives in parts. Elements are added in row order, so the
/// means do not depend on where the parts were cut.
class BinStatistics {
 public:
  explicit BinStatistics(std::size_t bins);

  /// The next rows of the column, and their tokens [rows, columns], u8 or i32.
  void add(std::span<const double> values, const HostTensor& tokens, std::size_t column);
  /// Sets bin_counts and bin_means.
  void store(ColumnFit& column) const;

 private:
  std::vector<double> sums_;
  std::vector<std::int64_t> counts_, finite_;
};

}  // namespace ferrite::quantile_tokenizer
