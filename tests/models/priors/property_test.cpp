// What holds for every dataset, whatever the config: checked for random ones.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "ferrite/backend/cpu.hpp"
#include "models/priors/sets.hpp"

namespace ferrite::priors {
namespace {

using ferrite::testing::Set;

Config random_config(std::mt19937& random) {
  const auto share = [&] { return random() / 4294967296.0; };
  const auto range = [&](int low, int high) {
    const int a = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    const int b = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    return IntRange{std::min(a, b), std::max(a, b)};
  };
  Config config;
  config.family = static_cast<Family>(random() % 6);
  config.weights = {share(), share(), share(), share(), share()};
  config.task = random() % 3 ? Task::classification : Task::regression;
  config.rows = range(60, 300);
  config.row_law = random() % 2 ? RowLaw::uniform : RowLaw::log_uniform;
  config.features = range(1, 30);
  config.train_share = {0.3, 0.3 + 0.5 * share()};
  config.group_size = 1 + static_cast<int>(random() % 5);
  config.post.classes = range(2, 5);
  config.post.cuts = static_cast<ClassCuts>(random() % 5);
  config.post.evenness = 0.5 + 5 * share();
  config.post.binary_share = share();
  config.post.categorical_share = share();
  config.post.category_scale = 1 + 20 * share();
  config.post.category_codes = random() % 2 > 0;
  config.post.skewed_share = random() % 2 ? share() : 0;
  config.post.missing_share = share();
  config.post.missing_columns = random() % 2 ? share() : 1;
  config.post.mnar_share = share();
  config.post.clip_sigma = random() % 3 ? 2 + 4 * share() : 0;
  config.post.standardise = random() % 3 > 0;
  config.post.learnability = random() % 2 ? 0.02 : 0;
  return config;
}

void check_labels(const Set& set, const Config& config) {
  std::set<double> train, test;
  for (std::size_t r = 0; r < set.y.size(); ++r)
    (r < static_cast<std::size_t>(set.train_rows) ? train : test).insert(set.y[r]);
  EXPECT_EQ(train, test);
  EXPECT_EQ(static_cast<int>(train.size()), set.classes);
  EXPECT_EQ(*train.begin(), 0);
  EXPECT_EQ(*train.rbegin(), set.classes - 1);
  EXPECT_GE(set.classes, config.post.classes.min);
  EXPECT_LE(set.classes, config.post.classes.max);
}

void check_columns(const Set& set, const Config& config) {
  for (int j = 0; j < set.features; ++j) {
    std::set<double> values;
    double missing = 0;
    for (const double v : set.column(j)) {
      if (std::isnan(v))
        ++missing;
      else
        values.insert(v);
    }
    for (const double v : values) ASSERT_TRUE(std::isfinite(v));
    if (const int levels = set.levels[static_cast<std::size_t>(j)]; levels > 0) {
      EXPECT_LE(static_cast<int>(values.size()), levels);
    }
    EXPECT_TRUE(missing == 0 || config.post.missing_share > 0);
    if (missing == 0) {
      EXPECT_GE(values.size(), 2u);  // constant columns are dropped
      const auto m = ferrite::testing::mean_and_std(set.column(j));
      if (config.post.standardise &&
          !(config.post.category_codes && set.levels[static_cast<std::size_t>(j)] > 0)) {
        EXPECT_NEAR(m.mean, 0, 1e-3);
        EXPECT_NEAR(m.std, 1, 1e-3);
      }
    }
  }
}

TEST(Properties, HoldForDatasetsOfRandomConfigs) {
  Cpu cpu;
  std::mt19937 random(12);
  int made = 0;
  for (int round = 0; round < 60; ++round) {
    const Config config = random_config(random);
    ASSERT_NO_THROW(config.check()) << config.to_json();
    SCOPED_TRACE(config.to_json());
    const std::int64_t first = random() % 1000;
    const auto batch = generate(cpu, config, 3, first, 6);
    const auto sets = testing::sets_of(batch);
    const auto alone = testing::sets_of(generate(cpu, config, 3, first + 4, 1));
    EXPECT_EQ(alone[0].y, sets[4].y);
    for (const Set& set : sets) {
      const int rejected = std::accumulate(set.rejected.begin(), set.rejected.end(), 0);
      EXPECT_EQ(set.attempts, rejected + (set.rows > 0 ? 1 : 0));
      if (set.rows == 0) {
        EXPECT_EQ(set.attempts, config.post.attempts);
        continue;
      }
      ++made;
      EXPECT_GE(set.rows, config.rows.min);
      EXPECT_LE(set.rows, config.rows.max);
      EXPECT_GE(set.train_rows, 1);
      EXPECT_LT(set.train_rows, set.rows);
      EXPECT_GE(set.features, 1);
      EXPECT_LE(set.features, config.features.max);
      if (config.task == Task::classification)
        check_labels(set, config);
      else
        EXPECT_EQ(set.classes, 0);
      check_columns(set, config);
    }
  }
  EXPECT_GT(made, 300);
}

}  // namespace
}  // namespace ferrite::priors
