// The bounds are those of Greenwald and Khanna's summaries in the form that carries both ranks and the known
// copies of a value, so that ties stay exact.
#include "ferrite/models/quantile_tokenizer/rank_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/core/error.hpp"

namespace ferrite::quantile_tokenizer {

RankSummary RankSummary::of_ranks(std::span<const double> values, std::span<const std::int64_t> ranks,
                                  std::int64_t count) {
  RankSummary summary;
  summary.count_ = count;
  if (count == 0) return summary;
  if (values.size() != ranks.size() || ranks.empty() || ranks.front() != 0 || ranks.back() != count - 1)
    throw ValueError(
        fmt::format("[rank_summary] {} values at {} ranks of {}: needs one value per rank, the "
                    "first and the last rank among them",
                    values.size(), ranks.size(), count));
  std::int64_t known = -1;  // the last rank of the entry before
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && values[j + 1] == values[i]) ++j;
    const std::int64_t next = j + 1 < ranks.size() ? ranks[j + 1] : count;
    if (j + 1 < ranks.size() && (values[j + 1] < values[j] || next <= ranks[j]))
      throw ValueError(fmt::format("[rank_summary] value {} at rank {} after {} at rank {}: both must ascend",
                                   values[j + 1], next, values[j], ranks[j]));
    summary.entries_.push_back({values[i], known + 1, next, ranks[j] - ranks[i] + 1});
    known = ranks[j];
    i = j + 1;
  }
  return summary;
}

RankSummary RankSummary::merge(const RankSummary& a, const RankSummary& b) {
  RankSummary merged;
  merged.count_ = a.count_ + b.count_;
  merged.entries_.reserve(a.entries_.size() + b.entries_.size());
  auto i = a.entries_.begin(), j = b.entries_.begin();
  // The other column's counts below, and up to, a value between two of its entries.
  const auto add = [&merged](const RankEntry& e, const RankSummary& other, auto next) {
    const std::int64_t below = next == other.entries_.begin() ? 0 : std::prev(next)->least_up_to();
    const std::int64_t up_to = next == other.entries_.end() ? other.count_ : next->most_below();
    merged.entries_.push_back({e.value, e.least_below + below, e.most_up_to + up_to, e.known_equal});
  };
  while (i != a.entries_.end() || j != b.entries_.end()) {
    if (j == b.entries_.end() || (i != a.entries_.end() && i->value < j->value)) {
      add(*i++, b, j);
    } else if (i == a.entries_.end() || j->value < i->value) {
      add(*j++, a, i);
    } else {
      merged.entries_.push_back({i->value, i->least_below + j->least_below, i->most_up_to + j->most_up_to,
                                 i->known_equal + j->known_equal});
      ++i, ++j;
    }
  }
  return merged;
}

RankSummary RankSummary::pruned(std::size_t size) const {
  if (entries_.size() <= size || size < 2) return *this;
  RankSummary result;
  result.count_ = count_;
  result.entries_.push_back(entries_.front());
  std::size_t at = 0;
  for (std::size_t k = 1; k + 1 < size; ++k) {
    const double rank = static_cast<double>(k) * static_cast<double>(count_) / static_cast<double>(size - 1);
    const auto distance = [&](const RankEntry& e) {
      return std::abs(static_cast<double>(e.least_below + e.most_up_to) / 2 - rank);
    };
    const std::size_t before = at;
    while (at + 1 < entries_.size() && distance(entries_[at + 1]) <= distance(entries_[at])) ++at;
    if (at != before) result.entries_.push_back(entries_[at]);
  }
  if (at + 1 < entries_.size()) result.entries_.push_back(entries_.back());
  return result;
}

RankSummary::Bracket RankSummary::bracket(std::int64_t rank) const {
  const auto high = std::partition_point(entries_.begin(), entries_.end(),
                                         [rank](const RankEntry& e) { return e.least_up_to() <= rank; });
  const auto low = std::partition_point(entries_.begin(), entries_.end(),
                                        [rank](const RankEntry& e) { return e.most_up_to <= rank; });
  const double top = high == entries_.end() ? entries_.back().value : high->value;
  if (low == entries_.begin()) return {-std::numeric_limits<double>::infinity(), top, true};
  return {std::prev(low)->value, top, false};
}

RankSketch::RankSketch(double rank_error)
    : size_(static_cast<std::size_t>(std::ceil(16 / std::max(rank_error, 1e-6))) + 2) {}

std::vector<std::int64_t> RankSketch::ranks_of_interest(std::int64_t count) const {
  const std::int64_t size = std::min(count, static_cast<std::int64_t>(size_));
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < size; ++i)
    ranks.push_back(
        size == 1 ? 0
                  : static_cast<std::int64_t>(static_cast<double>(i) * (static_cast<double>(count - 1) /
                                                                        static_cast<double>(size - 1))));
  if (!ranks.empty()) ranks.back() = count - 1;
  return ranks;
}

void RankSketch::add(RankSummary chunk) {
  if (chunk.count() == 0) return;
  std::size_t level = 0;
  for (; level < levels_.size() && levels_[level]; ++level) {
    chunk = RankSummary::merge(*levels_[level], chunk).pruned(size_);
    levels_[level].reset();
  }
  if (level == levels_.size()) levels_.emplace_back();
  levels_[level] = std::move(chunk);
}

RankSummary RankSketch::summary() const {
  RankSummary all;
  for (std::size_t i = levels_.size(); i-- > 0;)
    if (levels_[i]) all = RankSummary::merge(all, *levels_[i]);
  return all.pruned(size_);
}

}  // namespace ferrite::quantile_tokenizer
