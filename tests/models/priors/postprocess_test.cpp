// From raw values to training sets: classes, splits, categories, missing cells, standardisation, filters.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "models/priors/cpu_scratch.hpp"
#include "models/priors/sets.hpp"
#include "models/priors/statistics.hpp"
#include "models/priors/team.hpp"

namespace ferrite::priors {
namespace {

using ferrite::testing::mean_and_std;
using ferrite::testing::Set;

std::vector<Set> make(const Config& config, int count) {
  Cpu cpu;
  return testing::sets_of(generate(cpu, config, 21, 0, count));
}

Config base(Family family = Family::tree_scm) {
  Config config;
  config.family = family;
  config.rows = {200, 200};
  config.features = {3, 8};
  return config;
}

TEST(Classes, AreTheSameInTrainAndTestAndNumberedFromZero) {
  for (const Set& set : make(base(), 60)) {
    std::set<double> train(set.y.begin(), set.y.begin() + set.train_rows),
        test(set.y.begin() + set.train_rows, set.y.end());
    EXPECT_EQ(train, test);
    EXPECT_EQ(static_cast<int>(train.size()), set.classes);
    EXPECT_GE(set.classes, 2);
    EXPECT_EQ(*train.begin(), 0);
    EXPECT_EQ(*train.rbegin(), set.classes - 1);
    EXPECT_GT(set.train_rows, 0);
    EXPECT_LT(set.train_rows, set.rows);
  }
}

TEST(Classes, AreEquallyLargeIfBalancedAndOfAnySizeOtherwise) {
  Config config = base(Family::gp);
  config.post.classes = {4, 4};
  config.post.cuts = ClassCuts::balanced;
  for (const Set& set : make(config, 10)) {
    std::map<double, int> sizes;
    for (const double label : set.y) ++sizes[label];
    ASSERT_EQ(sizes.size(), 4u);
    for (const auto& [label, size] : sizes) EXPECT_EQ(size, 50);
  }
  config.post.cuts = ClassCuts::rank;
  bool imbalanced = false;
  for (const Set& set : make(config, 10)) {
    std::map<double, int> sizes;
    for (const double label : set.y) ++sizes[label];
    for (const auto& [label, size] : sizes) imbalanced = imbalanced || size < 15;
  }
  EXPECT_TRUE(imbalanced);
}

TEST(Classes, AreAsManyAsAskedForHalfOfThemTwo) {
  Config config = base(Family::gp);
  config.post.cuts = ClassCuts::balanced;
  config.post.learnability = 0;
  std::vector<double> counts(9);
  for (const Set& set : make(config, 1000)) ++counts[static_cast<std::size_t>(set.classes - 2)];
  std::vector<double> expected(9, 0.5 / 9);
  expected[0] += 0.5;
  EXPECT_LT(testing::chi_square_excess(counts, expected), 4);
}

TEST(Classes, CutAtValuesDoNotDependOnStandardisation) {
  Config config = base(Family::formula);
  config.formula.coefficient = {50, 100};  // far from standardised
  config.post.cuts = ClassCuts::value;
  config.post.learnability = 0;
  const auto standardised = make(config, 30);
  config.post.standardise = false;
  const auto raw = make(config, 30);
  for (std::size_t i = 0; i < raw.size(); ++i) EXPECT_EQ(raw[i].y, standardised[i].y);
}

TEST(Classes, ArePermutedUnlessToldOtherwise) {
  Config config = base(Family::formula);
  config.features = {1, 1};
  config.formula.terms = {1, 1};
  config.post.classes = {3, 3};
  config.post.cuts = ClassCuts::balanced;
  int first_lowest[2] = {};
  for (const bool permuted : {false, true}) {
    config.post.permute_labels = permuted;
    Config regression = config;
    regression.task = Task::regression;
    const auto labels = make(config, 40), values = make(regression, 40);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i].attempts != 1 || values[i].attempts != 1) continue;
      const auto lowest = std::min_element(values[i].y.begin(), values[i].y.end()) - values[i].y.begin();
      first_lowest[permuted] += labels[i].y[static_cast<std::size_t>(lowest)] == 0;
    }
  }
  EXPECT_GT(first_lowest[0], 30);
  EXPECT_LT(first_lowest[1], 25);
  EXPECT_GT(first_lowest[1], 2);
}

TEST(Columns, AreStandardisedWithoutOutliers) {
  Config config = base(Family::mlp_scm);
  config.task = Task::regression;
  config.post.categorical_share = 0;
  for (const Set& set : make(config, 30)) {
    for (int j = -1; j < set.features; ++j) {
      const auto column = j < 0 ? set.y : set.column(j);
      const auto m = mean_and_std(column);
      EXPECT_NEAR(m.mean, 0, 1e-4);
      EXPECT_NEAR(m.std, 1, 1e-3);
      for (const double v : column) ASSERT_LT(std::fabs(v), 14.2);  // sqrt(n): one row holds all the variance
    }
  }
}

TEST(Columns, OutliersAreClippedAtTheSpreadOfTheOthers) {
  // exp of a linear term has a long tail; clipping at two sigma must shorten it.
  Config config = base(Family::formula);
  config.task = Task::regression;
  config.features = {1, 1};
  config.formula.terms = {1, 1};
  config.formula.frequency = {4, 4};
  double longest[2] = {};
  for (const bool clipped : {false, true}) {
    config.post.clip_sigma = clipped ? 2 : 0;
    for (const Set& set : make(config, 20))
      for (const double v : set.y) longest[clipped] = std::max(longest[clipped], std::fabs(v));
  }
  EXPECT_GT(longest[0], 4);
  EXPECT_LT(longest[1], 3.5);
}

TEST(Categories, HaveFewLevelsAndSayHowMany) {
  Config config = base(Family::gp);
  config.post.categorical_share = 1;
  int categorical = 0, numeric = 0;
  for (const Set& set : make(config, 40)) {
    for (int j = 0; j < set.features; ++j) {
      const auto column = set.column(j);
      const std::set<double> values(column.begin(), column.end());
      const int levels = set.levels[static_cast<std::size_t>(j)];
      ++(levels > 0 ? categorical : numeric);
      if (levels > 0) {
        EXPECT_LE(static_cast<int>(values.size()), levels);
        EXPECT_GE(levels, 2);
      } else {
        EXPECT_GT(values.size(), 100u);
      }
    }
  }
  EXPECT_GT(categorical, 40);
  EXPECT_GT(numeric, 40);
}

TEST(Categories, KeepTheirRareLevels) {
  Config config = base(Family::gp);
  config.post.categorical_share = 1;
  config.post.learnability = 0;
  config.post.cuts = ClassCuts::balanced;
  const auto clipped = make(config, 60);
  config.post.clip_sigma = 0;
  const auto whole = make(config, 60);
  int compared = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ASSERT_EQ(clipped[i].levels, whole[i].levels);  // no column became constant
    for (int j = 0; j < whole[i].features; ++j) {
      if (whole[i].levels[static_cast<std::size_t>(j)] == 0) continue;
      EXPECT_EQ(clipped[i].column(j), whole[i].column(j));
      ++compared;
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(Missing, RatesAboveAHalfHoldForBothLaws) {
  Config config = base(Family::gp);
  config.post.categorical_share = 0;
  config.post.missing_share = 1;
  config.post.missing_rate = 0.9;
  double share[2] = {};
  for (const bool mnar : {false, true}) {
    config.post.mnar_share = mnar ? 1 : 0;
    double missing = 0, cells = 0;
    for (const Set& set : make(config, 100))
      for (const auto& row : set.x)
        for (const double v : row) {
          ++cells;
          missing += std::isnan(v);
        }
    share[mnar] = missing / cells;
  }
  EXPECT_GT(share[0], 0.4);
  EXPECT_NEAR(share[1], share[0], 0.01);
}

TEST(Missing, CellsAreLostAtRandomOrByTheirValue) {
  Config whole = base(Family::gp);
  whole.post.categorical_share = 0;
  Config config = whole;
  config.post.missing_share = 1;
  config.post.missing_rate = 0.6;
  for (const double mnar : {0.0, 1.0}) {
    config.post.mnar_share = mnar;
    const auto complete = make(whole, 60), holed = make(config, 60);
    double cells = 0, missing = 0, asymmetry = 0;
    for (std::size_t i = 0; i < holed.size(); ++i) {
      double lost = 0, count = 0;
      for (std::size_t r = 0; r < holed[i].x.size(); ++r) {
        for (std::size_t j = 0; j < holed[i].x[r].size(); ++j) {
          ++cells;
          if (!std::isnan(holed[i].x[r][j])) {
            ASSERT_EQ(holed[i].x[r][j], complete[i].x[r][j]);
            continue;
          }
          lost += complete[i].x[r][j];
          ++count;
        }
      }
      missing += count;
      if (count > 50) asymmetry += std::fabs(lost / count) / 60;
    }
    EXPECT_NEAR(missing / cells, 0.3, 0.07);
    if (mnar == 0)
      EXPECT_LT(asymmetry, 0.1);
    else
      EXPECT_GT(asymmetry, 0.4);
  }
}

TEST(Filters, ATargetThatIsConstantInTheRowsLookedAtTeachesNothing) {
  Config config = base();
  config.task = Task::regression;
  config.rows = {1000, 1000};
  CpuScratch scratch(config);
  Workspace& w = scratch.workspace();
  SerialTeam team;
  const DatasetKey key{1, 2, 3};
  team.normals(key.stream(Purpose::causes), 0, 3 * 1000, w.x);
  team.normals(key.stream(Purpose::noise), 0, 1000, w.y);
  for (int c = 0; c < 3; ++c) w.post->constant[c] = false;
  EXPECT_LT(neighbour_gain(team, config, 3, 1000, w), 0.2);
  for (int r = 0; r < neighbour_rows; ++r) w.y[r] = 0.25f;
  EXPECT_EQ(neighbour_gain(team, config, 3, 1000, w), 0);
}

TEST(Filters, RejectTargetsThatNothingExplains) {
  Config config = base(Family::formula);
  config.formula.coefficient = {0, 0};
  config.formula.noise = 1;
  config.post.attempts = 5;
  int made = 0;
  for (const Set& set : make(config, 1000)) {
    made += set.rows > 0;
    EXPECT_GE(set.rejected[static_cast<std::size_t>(Filter::unlearnable)], set.rows > 0 ? 0 : 1);
    if (set.rows == 0) {
      EXPECT_EQ(set.attempts, 5);
    }
  }
  EXPECT_LT(made, 110);  // chance lets 16 of 1000 attempts through
}

TEST(Filters, RejectConstantTargetsAndSaySo) {
  Config config = base(Family::formula);
  config.formula.coefficient = {0, 0};
  config.post.attempts = 3;
  for (const Set& set : make(config, 5)) {
    EXPECT_EQ(set.rows, 0);
    EXPECT_EQ(set.rejected[static_cast<std::size_t>(Filter::constant_target)], 3);
  }
}

}  // namespace
}  // namespace ferrite::priors
