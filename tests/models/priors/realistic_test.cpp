// The preset "realistic": its datasets look like real tables, by the statistics that are printed of both.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/hash.hpp"
#include "ferrite/io/csv.hpp"
#include "ferrite/models/priors/shards.hpp"
#include "ferrite/models/priors/table_statistics.hpp"
#include "ferrite/stacks.hpp"
#include "models/priors/sets.hpp"
#include "paths.hpp"

namespace ferrite::priors {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(TableStatistics, AreThoseOfASmallTable) {
  const std::vector<double> ramp{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<double> reversed(ramp.rbegin(), ramp.rend()), amounts;
  for (const double v : ramp) amounts.push_back(std::pow(2, v));
  const std::vector<double> classes{0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, nan};
  const std::vector<TableColumn> columns{{ramp, false},
                                         {{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, true},
                                         {reversed, false},
                                         {{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, nan}, false},  // says nothing
                                         {ramp, true},                                     // names of rows
                                         {{1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1}, false}};
  const TableStatistics table = table_statistics(columns, classes);
  EXPECT_EQ(table.rows, 12);
  EXPECT_EQ(table.features, 4);
  EXPECT_DOUBLE_EQ(table.categorical, 0.5);
  EXPECT_DOUBLE_EQ(*table.correlation, 1);
  EXPECT_EQ(table.missing, 0);
  EXPECT_DOUBLE_EQ(*table.largest_class, 6.0 / 11);
  EXPECT_EQ(*table.classes, 3);
  EXPECT_EQ(*table.levels, 2.5);
  EXPECT_NEAR(*table.skew, 0, 1e-12);
  const TableStatistics skewed = table_statistics(std::vector<TableColumn>{{amounts, false}});
  EXPECT_NEAR(*skewed.skew, 2.0343, 1e-3);  // scipy.stats.skew
  EXPECT_FALSE(skewed.correlation || skewed.largest_class || skewed.levels);
  std::vector<double> longer = ramp, powers = amounts;
  for (const double v : {13, 14}) longer.push_back(v), powers.push_back(std::pow(2, v));
  longer[0] = longer[5] = nan;
  const TableStatistics missing =
      table_statistics(std::vector<TableColumn>{{longer, false}, {powers, false}});
  EXPECT_DOUBLE_EQ(missing.missing, 2.0 / 28);
  ASSERT_TRUE(missing.correlation);
  EXPECT_NEAR(*missing.correlation, 0.7255, 1e-3);  // numpy.corrcoef of the twelve whole rows
  EXPECT_THROW(table_statistics(columns, std::vector<double>{1, 2}), ValueError);
}

TEST(TableStatistics, LeaveOutWhatIsInfinite) {
  std::vector<double> ramp, other, huge;
  for (int i = 0; i < 20; ++i) ramp.push_back(i), other.push_back(i * 7 % 20), huge.push_back(i * 1e200);
  const auto of = [&](const std::vector<double>& a) {
    return table_statistics(std::vector<TableColumn>{{a, false}, {other, false}});
  };
  std::vector<double> infinite = ramp, without = ramp;
  infinite[3] = std::numeric_limits<double>::infinity();
  infinite[8] = -infinite[3];
  without[3] = without[8] = nan;
  const TableStatistics found = of(infinite), wanted = of(without);
  ASSERT_TRUE(found.correlation && found.skew);
  EXPECT_DOUBLE_EQ(*found.correlation, *wanted.correlation);
  EXPECT_LT(*found.correlation, 0.5);
  EXPECT_DOUBLE_EQ(*found.skew, *wanted.skew);
  EXPECT_EQ(found.missing, 0);
  EXPECT_FALSE(of(huge).correlation) << "its products overflow";
  EXPECT_DOUBLE_EQ(*of(huge).skew, *of(other).skew) << "of the other column only";
}

TEST(TableStatistics, OfRealTablesAreThoseOfTheFile) {
  // Where a table does not have a statistic the field is empty.
  const CsvTable file = read_csv(test_paths::source_folder() + "/benches/results/real-tables.csv",
                                 CsvConfig{}
                                     .with_missing(CsvMissing::as_nan)
                                     .with_columns({"rows", "features", "categorical", "correlation",
                                                    "missing", "largest_class", "levels", "skew"}));
  ASSERT_EQ(file.rows(), real_tables);
  ASSERT_GE(real_tables, 20);
  const auto optional = [&](std::string_view name, std::size_t row) {
    const double v = file.column(name)[row];
    return std::isnan(v) ? std::nullopt : std::optional(v);
  };
  std::vector<TableStatistics> tables;
  for (std::size_t r = 0; r < static_cast<std::size_t>(real_tables); ++r)
    tables.push_back({static_cast<std::int64_t>(file.column("rows")[r]),
                      static_cast<std::int64_t>(file.column("features")[r]), file.column("categorical")[r],
                      optional("correlation", r), file.column("missing")[r], optional("largest_class", r),
                      std::nullopt, optional("levels", r), optional("skew", r)});
  for (const std::string_view name : statistic_names) {
    const Quartiles file_says = *quartiles(tables, name), code_says = real_quartiles(name);
    const auto near = [&](double a, double b) { EXPECT_NEAR(a, b, 1e-4 * std::max(1.0, a)) << name; };
    near(file_says.mean, code_says.mean);
    near(file_says.lower, code_says.lower);
    near(file_says.median, code_says.median);
    near(file_says.upper, code_says.upper);
  }
}

/// The statistics of many datasets of a preset.
std::vector<TableStatistics> drawn(std::string_view preset, std::uint64_t seed) {
  Cpu cpu;
  return batch_statistics(to_host(generate(cpu, Config::preset(preset), seed, 0, 400)));
}

TEST(RealisticPrior, HasTheStatisticsOfRealTables) {
  for (const std::uint64_t seed : {1, 2}) {
    const auto tables = drawn("realistic", seed);
    ASSERT_GE(tables.size(), 398u);
    for (const std::string_view name :
         {"categorical", "correlation", "missing", "largest_class", "levels", "skew"}) {
      const Quartiles ours = *quartiles(tables, name), real = real_quartiles(name);
      EXPECT_GE(ours.median, real.lower) << name;
      EXPECT_LE(ours.median, real.upper) << name;
      // Near the median too: within a third of the distance between the quartiles.
      EXPECT_NEAR(ours.median, real.median, (real.upper - real.lower) / 3) << name;
    }
    for (const std::string_view name : {"categorical", "correlation", "largest_class"}) {
      const double mean = quartiles(tables, name)->mean;
      EXPECT_NEAR(mean, real_quartiles(name).mean, 0.06) << name;
    }
    // Most tables miss nothing: their quartiles say little, the mean does.
    EXPECT_NEAR(quartiles(tables, "missing")->mean, real_quartiles("missing").mean, 0.006);
  }
}

TEST(RealisticPrior, DiffersFromTheDefaultWhereThatIsFarFromRealTables) {
  const auto tables = drawn("default", 1);
  EXPECT_LT(quartiles(tables, "categorical")->median, real_quartiles("categorical").lower);
  EXPECT_LT(quartiles(tables, "correlation")->median, real_quartiles("correlation").lower);
  EXPECT_EQ(quartiles(tables, "missing")->mean, 0);
}

TEST(RealisticPrior, HasCodesForCategoriesAndHolesInSomeColumns) {
  Cpu cpu;
  Config config = Config::preset("realistic");
  config.rows = {300, 300};
  int coded = 0, whole = 0, with_holes = 0, partly = 0;
  for (const testing::Set& set : testing::sets_of(generate(cpu, config, 3, 0, 60))) {
    int holes = 0;
    for (int j = 0; j < set.features; ++j) {
      bool missing = false;
      const int levels = set.levels[static_cast<std::size_t>(j)];
      for (const double v : set.column(j)) {
        missing = missing || std::isnan(v);
        if (levels == 0 || std::isnan(v)) continue;
        ++coded;
        whole += v == std::floor(v) && v >= 0 && v < levels;
      }
      holes += missing;
    }
    with_holes += holes > 0;
    partly += holes > 0 && holes < set.features;
  }
  EXPECT_GT(coded, 10'000);
  EXPECT_EQ(whole, coded);
  EXPECT_GT(with_holes, 10);
  EXPECT_GT(partly, with_holes / 2);
}

TEST(RealisticPrior, GivesTheSameBitsOnEveryBackendAndMachine) {
  Config config = Config::preset("realistic");
  config.rows = {40, 70};
  config.features = {3, 9};
  config.post.classes = {2, 5};
  Cpu cpu;
  Reference reference;
  const auto bits = [&](auto& backend) {
    const auto batch = generate(backend, config, 5, 0, 8);
    std::uint64_t hash = hash_start;
    for (const auto& tensor : {batch.x, batch.y, batch.levels, batch.info})
      hash = hash_bytes(to_bytes(tensor), hash);
    return hash;
  };
  EXPECT_EQ(bits(cpu), bits(reference));
  EXPECT_EQ(bits(cpu), 0x9483e171a2627b7bu) << std::hex << "0x" << bits(cpu) << "u";
}

TEST(ClassCuts, SharesFollowTheEvenness) {
  Cpu cpu;
  Config config;
  config.rows = {500, 500};
  config.family = Family::gp;
  config.post.learnability = 0;
  config.post.classes = {3, 3};
  config.post.cuts = ClassCuts::shares;
  const auto largest = [&](double evenness) {
    config.post.evenness = evenness;
    return quartiles(batch_statistics(to_host(generate(cpu, config, 1, 0, 200))), "largest_class")->mean;
  };
  EXPECT_NEAR(largest(1000), 1.0 / 3, 0.02);
  EXPECT_NEAR(largest(1), 11.0 / 18, 0.04);  // the largest part of a stick broken at two uniform points
  EXPECT_GT(largest(0.2), 0.7);
}

}  // namespace
}  // namespace ferrite::priors
