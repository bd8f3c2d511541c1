#include "models/quantile_tokenizer/streamed_fit.hpp"

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"
#include "models/quantile_tokenizer/token_types.hpp"

namespace ferrite::quantile_tokenizer {

RankRefiner::RankRefiner(const RankSummary& summary, const TokenizerConfig& config)
    : config_(config), count_(summary.count()) {
  if (count_ == 0) return;
  std::vector<std::int64_t> ranks;
  for (const double level : config.edge_levels()) {
    const QuantilePosition place = quantile_position(config.method, level, count_);
    ranks.insert(ranks.end(), {place.lower, place.upper});
  }
  std::sort(ranks.begin(), ranks.end());
  for (const std::int64_t rank : ranks) {
    const auto bracket = summary.bracket(rank);
    if (!intervals_.empty()) {
      Interval& last = intervals_.back();
      if (bracket.high <= last.high) continue;  // both ends ascend with the rank
      if (bracket.from_start || bracket.low < last.high) {
        last.high = bracket.high;
        continue;
      }
    }
    intervals_.push_back({bracket.low, bracket.high, bracket.from_start, {}});
  }
  for (const Interval& interval : intervals_) highs_.push_back(interval.high);
}

void RankRefiner::add(std::span<const double> values) {
  for (const double value : values) {
    if (value != value || intervals_.empty()) continue;
    const auto found = std::lower_bound(highs_.begin(), highs_.end(), value);
    if (found == highs_.end()) continue;  // above all intervals: no wanted rank here
    Interval& interval = intervals_[static_cast<std::size_t>(found - highs_.begin())];
    if (value == interval.high)
      ++interval.equal;
    else if (interval.from_start || value > interval.low)
      interval.inside.push_back(value);
    else
      ++interval.before;
  }
}

double RankRefiner::at(std::int64_t rank) const {
  std::int64_t first = 0;
  for (const Interval& interval : intervals_) {
    first += interval.before;
    const auto inside = static_cast<std::int64_t>(interval.inside.size());
    if (rank >= first && rank < first + inside)
      return interval.inside[static_cast<std::size_t>(rank - first)];
    first += inside;
    if (rank >= first && rank < first + interval.equal) return interval.high;
    first += interval.equal;
  }
  throw ValueError("[tokenizer.fit] the table changed while it was read");
}

std::vector<double> RankRefiner::quantiles() {
  for (Interval& interval : intervals_) std::sort(interval.inside.begin(), interval.inside.end());
  std::vector<double> result;
  for (const double level : config_.edge_levels()) {
    if (count_ == 0) {
      result.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    const QuantilePosition place = quantile_position(config_.method, level, count_);
    result.push_back(interpolate_quantile(at(place.lower), at(place.upper), place.weight));
  }
  return result;
}

BinStatistics::BinStatistics(std::size_t bins) : sums_(bins), counts_(bins), finite_(bins) {}

void BinStatistics::add(std::span<const double> values, const HostTensor& tokens, std::size_t column) {
  const auto width = static_cast<std::size_t>(tokens.shape()[1]);
  const auto add_all = [&](auto token) {
    for (std::size_t r = 0; r < values.size(); ++r) {
      if (values[r] != values[r]) continue;  // its token may be that of a bin, see MissingPolicy
      const auto bin = static_cast<std::size_t>(token[r * width + column]);
      const bool finite = std::isfinite(values[r]);
      ++counts_[bin];
      finite_[bin] += finite;
      sums_[bin] += finite ? values[r] : 0;
    }
  };
  visit_tokens(tokens.dtype(), [&]<class T>() { add_all(tokens.as<T>()); });
}

void BinStatistics::store(ColumnFit& column) const {
  column.bin_counts = counts_;
  column.bin_means.clear();
  for (std::size_t i = 0; i < sums_.size(); ++i)
    column.bin_means.push_back(sums_[i] / static_cast<double>(finite_[i]));  // NaN for an empty bin
}

}  // namespace ferrite::quantile_tokenizer
