// The bounds of RankSummary hold for what they summarise, however it was cut, merged and pruned.
#include "ferrite/models/quantile_tokenizer/rank_summary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::quantile_tokenizer {
namespace {

RankSummary summary_of(std::vector<double> values, const std::vector<std::int64_t>& ranks) {
  std::sort(values.begin(), values.end());
  std::vector<double> known;
  for (const std::int64_t r : ranks) known.push_back(values[static_cast<std::size_t>(r)]);
  return RankSummary::of_ranks(known, ranks, static_cast<std::int64_t>(values.size()));
}

void expect_bounds(const RankSummary& summary, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  ASSERT_EQ(summary.count(), static_cast<std::int64_t>(values.size()));
  ASSERT_EQ(summary.entries().front().value, values.front());
  ASSERT_EQ(summary.entries().back().value, values.back());
  for (const RankEntry& e : summary.entries()) {
    const auto below = std::lower_bound(values.begin(), values.end(), e.value) - values.begin();
    const auto up_to = std::upper_bound(values.begin(), values.end(), e.value) - values.begin();
    ASSERT_LE(e.least_below, below);
    ASSERT_LE(below, e.most_below());
    ASSERT_LE(e.least_up_to(), up_to);
    ASSERT_LE(up_to, e.most_up_to);
    ASSERT_LE(e.known_equal, up_to - below);
  }
  for (std::int64_t rank = 0; rank < summary.count(); ++rank) {
    const auto bracket = summary.bracket(rank);
    const double value = values[static_cast<std::size_t>(rank)];
    ASSERT_LE(value, bracket.high);
    ASSERT_TRUE(bracket.from_start || value > bracket.low);
  }
}

/// How far a rank is from those of the entry that is next to it; entries hold all ranks that equal elements
/// have.
std::int64_t distance_to_entries(const RankSummary& summary, std::int64_t rank,
                                 const std::vector<double>& sorted) {
  std::int64_t nearest = summary.count();
  for (const RankEntry& e : summary.entries()) {
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), e.value) - sorted.begin();
    const auto up_to = std::upper_bound(sorted.begin(), sorted.end(), e.value) - sorted.begin();
    nearest = std::min<std::int64_t>(nearest, std::max<std::int64_t>({0, below - rank, rank - (up_to - 1)}));
  }
  return nearest;
}

std::vector<double> column(std::size_t n, std::uint64_t seed, double step) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) {
    const double v = std::log(uniform_at<double>({seed, 3}, i) + 1e-9);
    values.push_back(step > 0 ? std::round(v / step) * step : v);
  }
  return values;
}

TEST(RankSummary, IsExactWhereAllRanksAreKnown) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 200; ++i) all.push_back(i);
  for (const double step : {0.0, 0.5}) {
    auto values = column(200, 1, step);
    const auto summary = summary_of(values, all);
    expect_bounds(summary, values);
    for (const RankEntry& e : summary.entries()) EXPECT_EQ(e.least_up_to(), e.most_up_to);
    std::sort(values.begin(), values.end());
    for (const std::int64_t rank : all) EXPECT_EQ(distance_to_entries(summary, rank, values), 0);
  }
}

TEST(RankSummary, KeepsItsBoundsWhenMergedAndPruned) {
  for (const double step : {0.0, 0.05, 1.0})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      RankSketch sketch(0.08);
      std::vector<double> all;
      for (std::size_t part = 0; part < 9; ++part) {
        const auto values = column(300 + 57 * part, 10 * seed + part, step);
        all.insert(all.end(), values.begin(), values.end());
        sketch.add(summary_of(values, sketch.ranks_of_interest(static_cast<std::int64_t>(values.size()))));
      }
      const RankSummary summary = sketch.summary();
      expect_bounds(summary, all);
      EXPECT_LE(summary.entries().size(), 203u);
      std::sort(all.begin(), all.end());
      for (std::int64_t rank = 0; rank < summary.count(); rank += 17)
        ASSERT_LE(static_cast<double>(distance_to_entries(summary, rank, all)),
                  0.08 * static_cast<double>(summary.count()));
    }
}

TEST(RankSummary, RefusesWhatContradictsItself) {
  const std::vector<double> values{1, 2, 3};
  EXPECT_THROW(RankSummary::of_ranks(values, std::vector<std::int64_t>{0, 1}, 2), ValueError);
  EXPECT_THROW(RankSummary::of_ranks(values, std::vector<std::int64_t>{0, 1, 2}, 5), ValueError);
  EXPECT_THROW(RankSummary::of_ranks(values, std::vector<std::int64_t>{0, 0, 2}, 3), ValueError);
  EXPECT_THROW(RankSummary::of_ranks(std::vector<double>{2, 1, 3}, std::vector<std::int64_t>{0, 1, 2}, 3),
               ValueError);
}

}  // namespace
}  // namespace ferrite::quantile_tokenizer
