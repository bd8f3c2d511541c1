// Simple models predict what those of scikit-learn predict.
#include "ferrite/models/pfn/baselines.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/pfn/metrics.hpp"
#include "models/pfn/minimise.hpp"
#include "sklearn_reference.hpp"

namespace ferrite::testing {
namespace {

using Doubles = std::vector<double>;

double largest_difference(const Doubles& a, const Doubles& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(LinearModel, IsTheLogisticRegressionOfSklearn) {
  for (const auto& [name, by_strength] : sklearn_reference()["logistic"].items()) {
    const ReferenceTable table(name);
    for (const auto& [strength, expected] : by_strength.items()) {
      const auto model = pfn::linear_model({.penalty = 1 / std::stod(strength)});
      model->fit(table.train);
      EXPECT_LT(largest_difference(model->predict(table.test), expected.get<Doubles>()), 1e-6)
          << name << ", C = " << strength;
    }
  }
}

TEST(LinearModel, TheUnitOfTargetsDoesNotMatter) {
  pfn::EncodedTable table;
  table.task = pfn::Task::regression;
  table.features = {{"x", "x", false, 0}};
  for (int r = 0; r < 20; ++r) {
    table.x.push_back(static_cast<float>(std::sin(r)));
    table.targets.push_back(2 * std::sin(r) + std::cos(3 * r) / 4);
  }
  table.rows = 20;
  const auto answers = [&](double unit) {
    pfn::EncodedTable scaled = table;
    for (double& y : scaled.targets) y *= unit;
    const auto model = pfn::linear_model();
    model->fit(scaled);
    Doubles answer = model->predict(scaled);
    for (double& y : answer) y /= unit;
    return answer;
  };
  for (const double unit : {1e-200, 1e200, 5e307})
    EXPECT_LT(largest_difference(answers(unit), answers(1)), 1e-6) << unit;
}

TEST(LinearModel, IsTheRidgeRegressionOfSklearn) {
  const ReferenceTable table("diabetes");
  EXPECT_EQ(table.train.task, pfn::Task::regression);
  const auto model = pfn::linear_model();
  model->fit(table.train);
  const auto expected = sklearn_reference()["ridge"]["diabetes"].get<Doubles>();
  EXPECT_LT(largest_difference(model->predict(table.test), expected), 1e-4);  // of numbers near 150
}

TEST(NearestNeighbours, AreThoseOfSklearn) {
  for (const char* name : {"wine", "breast_cancer", "diabetes"}) {
    const ReferenceTable table(name);
    const auto model = pfn::nearest_neighbours();
    model->fit(table.train);
    const auto expected = sklearn_reference()["neighbours"][name].get<Doubles>();
    EXPECT_LT(largest_difference(model->predict(table.test), expected), 1e-6) << name;
  }
}

TEST(NearestNeighbours, CompareCategoriesAndMissingCells) {
  pfn::EncodedTable train;
  train.task = pfn::Task::regression;
  train.features = {{"n", "n", false, 0}, {"c", "c", true, 3}};
  train.rows = 4;
  train.x = {0, 0, 0, 2, NAN, 1, 2, 1};  // the mean of n is 2 / 3
  train.targets = {1, 2, 3, 4};
  const auto model = pfn::nearest_neighbours({.neighbours = 1});
  model->fit(train);
  pfn::EncodedTable test = train;
  test.rows = 3;
  test.x = {0.1f, 2, NAN, 1, 2, 0};
  EXPECT_EQ(model->predict(test), (Doubles{2, 3, 4}));
}

TEST(Majority, SaysTheShares) {
  const ReferenceTable table("iris");
  const auto model = pfn::majority();
  model->fit(table.train);
  const Doubles p = model->predict(table.test);
  EXPECT_EQ(p.size(), 3u * 75);
  EXPECT_NEAR(p[4], 25.0 / 75, 1e-12);
  const ReferenceTable numbers("diabetes");
  model->fit(numbers.train);
  const Doubles& targets = numbers.train.targets;
  const double mean =
      std::accumulate(targets.begin(), targets.end(), 0.0) / static_cast<double>(targets.size());
  EXPECT_NEAR(model->predict(numbers.test)[7], mean, 1e-9);
}

TEST(Baselines, HaveTheSameBitsForAnyNumberOfThreads) {
  const ReferenceTable table("wine");
  const int threads = num_threads();
  for (const auto& make : {+[] { return pfn::linear_model(); }, +[] { return pfn::nearest_neighbours(); }}) {
    std::vector<Doubles> all;
    for (const int n : {1, 3}) {
      set_num_threads(n);
      const auto model = make();
      model->fit(table.train);
      all.push_back(model->predict(table.test));
    }
    EXPECT_EQ(all[0], all[1]);
  }
  set_num_threads(threads);
}

TEST(Baselines, RefuseWhatDoesNotFit) {
  const ReferenceTable table("wine"), other("iris");
  for (const auto& model : {pfn::majority(), pfn::nearest_neighbours(), pfn::linear_model()}) {
    EXPECT_THROW(model->predict(table.test), ValueError) << model->name();
    pfn::EncodedTable unlabelled = table.train;
    unlabelled.classes[3] = -1;
    EXPECT_THROW(model->fit(unlabelled), ValueError) << model->name();
    model->fit(table.train);
    EXPECT_THROW(model->predict(other.test), ValueError) << model->name();
    EXPECT_EQ(model->predict(table.test.take({})).size(), 0u);
  }
  EXPECT_THROW(pfn::linear_model({.penalty = 0}), ValueError);
  EXPECT_THROW(pfn::nearest_neighbours({.neighbours = 0}), ValueError);
}

TEST(Minimise, FindsTheMinimumOfAnIllConditionedFunction) {
  const auto result = pfn::detail::minimise(
      [](std::span<const double> at, std::span<double> gradient) {
        double value = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
          const double weight = std::pow(10.0, static_cast<double>(i) / 3),
                       d = at[i] - static_cast<double>(i);
          value += weight * d * d / 2;
          gradient[i] = weight * d;
        }
        return value;
      },
      Doubles(10), 500, 1e-9);
  EXPECT_TRUE(result.found);
  EXPECT_LT(result.steps, 100);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(result.at[i], static_cast<double>(i), 1e-8);
}

}  // namespace
}  // namespace ferrite::testing
