// RankSummary: the ranks of a column's values, known from a few of them, with guaranteed bounds. Summaries of
// parts merge into one of the whole. RankSketch keeps the summary of a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::quantile_tokenizer {

/// For a value v that occurs: bounds on how many elements are below it and how many are not above it.
struct RankEntry {
  double value = 0;
  std::int64_t least_below = 0;  // count(x < v) is at least this
  std::int64_t most_up_to = 0;   // count(x <= v) is at most this
  std::int64_t known_equal = 0;  // v occurs at least so often

  /// count(x < v) is at most this, count(x <= v) at least that.
  std::int64_t most_below() const { return most_up_to - known_equal; }
  std::int64_t least_up_to() const { return least_below + known_equal; }
};

/// A value: entries ascend. The first is the minimum and the last the maximum of what was summarised.
class FERRITE_API RankSummary {
 public:
  RankSummary() = default;
  /// From elements of known rank (counted from 0), both ascending, the first and the last rank among them.
  /// ValueError otherwise.
  static RankSummary of_ranks(std::span<const double> values, std::span<const std::int64_t> ranks,
                              std::int64_t count);

  /// The summary of two columns, one after the other.
  static RankSummary merge(const RankSummary& a, const RankSummary& b);
  /// About `size` of the entries, evenly spaced by rank; the remaining entries keep their bounds.
  RankSummary pruned(std::size_t size) const;

  std::int64_t count() const { return count_; }
  const std::vector<RankEntry>& entries() const { return entries_; }

  /// low < x(rank) <= high; with from_start there is no lower bound: x(rank) <= high.
  struct Bracket {
    double low, high;
    bool from_start;
  };
  Bracket bracket(std::int64_t rank) const;

 private:
  std::vector<RankEntry> entries_;
  std::int64_t count_ = 0;
};

/// Summaries of chunks, merged in pairs of similar size, so that an element goes through few prunings: the
/// error grows with the logarithm of the number of chunks. The result depends only on the order of the
/// chunks.
class FERRITE_API RankSketch {
 public:
  /// Summaries are pruned to enough entries for `rank_error`, as a share of the count.
  explicit RankSketch(double rank_error);

  /// The ranks that add() needs for a chunk of `count` elements: all of them or evenly spaced ones.
  std::vector<std::int64_t> ranks_of_interest(std::int64_t count) const;
  void add(RankSummary chunk);
  RankSummary summary() const;

 private:
  std::size_t size_;
  std::vector<std::optional<RankSummary>> levels_;  // level i holds 2^i chunks
};

}  // namespace ferrite::quantile_tokenizer
