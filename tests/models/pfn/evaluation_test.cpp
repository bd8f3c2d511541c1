// An evaluation scores every model on the same folds, and finds the columns that matter.
#include "ferrite/models/pfn/evaluation.hpp"

#include "ferrite/core/rng.hpp"
#include "ferrite/models/pfn/baselines.hpp"
#include "pfn_tables.hpp"
#include "sklearn_reference.hpp"

namespace ferrite::testing {
namespace {

TEST(Evaluation, ScoresAreThoseOfCrossValidation) {
  const pfn::Table wine = pfn::read_table(reference_path("wine.csv"));
  const auto models = pfn::baseline_candidates(pfn::Task::classification);
  const auto found = pfn::evaluate(wine, "target", models);
  ASSERT_EQ(found.models.size(), 3u);
  EXPECT_EQ(found.models[2].name, "logistic regression");
  for (std::size_t m = 0; m < 3; ++m) {
    ASSERT_EQ(found.models[m].scores[0].size(), 5u);
    EXPECT_NEAR(pfn::spread_of(found.models[m].scores[0]).mean, pfn::mean_score(found.validation, m), 1e-12);
  }
  EXPECT_EQ(found.best_model(), 2u);
  EXPECT_EQ(found.best(1), std::vector<std::size_t>{2});  // the least log loss
  EXPECT_TRUE(found.importance.empty());
  EXPECT_NOTICE(found.notices,
                "nearest neighbours: 2 of 178 rows have a class to which it gave probability 0");
}

TEST(Evaluation, EqualModelsAreBestTogether) {
  const pfn::Table wine = pfn::read_table(reference_path("wine.csv"));
  auto models = pfn::baseline_candidates(pfn::Task::classification);
  models.push_back(models[2]);
  EXPECT_EQ(pfn::evaluate(wine, "target", models).best(0), (std::vector<std::size_t>{2, 3}));
}

/// y follows `signal` alone; `copy` of rows is in their order, so that no column is constant.
pfn::Table signal_table(std::int64_t rows) {
  std::vector<double> signal, noise, y;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(rows); ++r) {
    signal.push_back(static_cast<double>(normal_at<float>({1, 1}, r)));
    noise.push_back(static_cast<double>(normal_at<float>({1, 2}, r)));
    y.push_back(3 * signal.back() + 0.1 * static_cast<double>(normal_at<float>({1, 3}, r)));
  }
  pfn::Table table;
  table.add_numbers("noise", noise).add_numbers("signal", signal).add_numbers("y", y);
  return table;
}

TEST(Evaluation, ImportanceIsOfRowsThatWereNotLearnedFrom) {
  const auto models = pfn::baseline_candidates(pfn::Task::regression);
  pfn::EvaluationConfig config;
  config.folds = 4;
  config.repeats = 3;
  config.importance_rows = 20;  // of 25 in a test part
  std::vector<double> shares;
  config.progress = [&](std::string_view, double share) { shares.push_back(share); };
  const auto found = pfn::evaluate(signal_table(100), "y", models, config);
  EXPECT_EQ(found.models[found.best_model()].name, "ridge regression");
  ASSERT_EQ(found.importance.size(), 2u);
  EXPECT_EQ(found.importance[0].column, "signal");
  EXPECT_EQ(found.importance[0].losses.size(), 12u);
  EXPECT_NEAR(found.importance[0].mean, 2, 0.7);  // from R2 = 1 to about -1
  EXPECT_GT(found.importance[0].deviation, 0);
  EXPECT_NEAR(found.importance[1].mean, 0, 0.01);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
}

/// Ridge regression that counts what it is asked.
struct CountedRidge {
  std::int64_t calls = 0, rows = 0;

  std::function<pfn::FittedModel(const pfn::EncodedTable&)> fit() {
    return [this](const pfn::EncodedTable& train) {
      const std::shared_ptr<pfn::Baseline> model = pfn::linear_model();
      model->fit(train);
      pfn::FittedModel fitted;
      fitted.predict = [this, model](const pfn::EncodedTable& asked) {
        ++calls;
        rows += asked.rows;
        return model->predict(asked);
      };
      return fitted;
    };
  }
};

TEST(Evaluation, ImportanceCostsAboutAsMuchAsTheScores) {
  struct Case {
    std::int64_t rows, rows_each, columns;
  };
  // Of 40 columns; four times the rows of the table are predicted in a fold, and once those that are dealt.
  for (const Case& c : {Case{100, 20, 20}, Case{1000, 100, 40}}) {
    pfn::Table table = signal_table(c.rows);
    for (std::uint64_t column = 0; column < 38; ++column) {
      std::vector<double> noise;
      for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(c.rows); ++r)
        noise.push_back(normal_at<double>({2, column}, r));
      table.add_numbers("noise " + std::to_string(column), noise);
    }
    CountedRidge full, light;
    const std::vector<pfn::Candidate> models{{"ridge", full.fit(), light.fit()}};
    pfn::EvaluationConfig config;
    config.repeats = 1;
    std::vector<double> shares;
    config.progress = [&](std::string_view, double share) { shares.push_back(share); };
    const auto found = pfn::evaluate(table, "y", models, config);
    EXPECT_EQ(full.calls, 5);
    EXPECT_EQ(full.rows, c.rows);
    EXPECT_EQ(light.calls, 5 * (1 + c.columns));
    EXPECT_EQ(light.rows, light.calls * c.rows_each);
    ASSERT_EQ(static_cast<std::int64_t>(found.importance.size()), c.columns);
    EXPECT_EQ(found.importance[0].column, "signal");
    EXPECT_GT(found.importance[0].mean, 1);
    EXPECT_LT(found.importance[1].mean, 0.1);
    EXPECT_EQ(has_notice(found.notices, "the importance of 20 of the 40 columns was measured"),
              c.rows == 100);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_EQ(shares.back(), 1);
    shares.erase(std::unique(shares.begin(), shares.end()), shares.end());
    EXPECT_GT(static_cast<std::int64_t>(shares.size()), 5 * c.columns);  // it moves with every column
  }
}

TEST(Evaluation, AColumnThatAFoldDropsLosesNothingThere) {
  // `flag` is 1 in one row only, so the fold that tests it finds a constant column.
  std::vector<double> flag(40, 0.0);
  flag[7] = 1;
  pfn::Table table = signal_table(40);
  table.add_numbers("flag", flag);
  pfn::EvaluationConfig config;
  config.repeats = 2;
  const auto found = pfn::evaluate(table, "y", pfn::baseline_candidates(pfn::Task::regression), config);
  ASSERT_EQ(found.importance.size(), 3u);
  for (const pfn::ColumnImportance& column : found.importance) EXPECT_EQ(column.losses.size(), 10u);
}

/// Learns the mean, and is sure that the target lies within 2 of it.
pfn::FittedModel with_intervals(const pfn::EncodedTable& train) {
  const std::shared_ptr<pfn::Baseline> mean = pfn::majority();
  mean->fit(train);
  pfn::FittedModel model;
  model.predict = [=](const pfn::EncodedTable& rows) { return mean->predict(rows); };
  model.predict_intervals = [=](const pfn::EncodedTable& rows) {
    pfn::IntervalPrediction said{mean->predict(rows), {}};
    for (const double v : said.values) {
      said.intervals.low.push_back(v - 2);
      said.intervals.high.push_back(v + 2);
    }
    return said;
  };
  model.notices = {"some rows were not read"};
  return model;
}

TEST(Evaluation, IntervalsGoToTheirRows) {
  auto models = pfn::baseline_candidates(pfn::Task::regression);
  models.push_back({"sure", with_intervals});
  const auto found = pfn::evaluate(signal_table(60), "y", models);
  ASSERT_EQ(found.metrics.size(), 4u);
  EXPECT_EQ(found.metrics[3].name, "coverage");
  EXPECT_TRUE(found.models[0].scores[3].empty());
  const auto& [low, high] = found.models[3].intervals;
  ASSERT_EQ(low.size(), 60u);
  double inside = 0;
  for (std::size_t r = 0; r < low.size(); ++r) {
    EXPECT_NEAR(low[r], found.validation.predictions[3][r] - 2, 1e-12);
    inside += std::abs(found.rows().targets[r] - found.validation.predictions[3][r]) <= 2;
  }
  EXPECT_NEAR(pfn::spread_of(found.models[3].scores[3]).mean, inside / 60, 1e-12);  // folds of 12 rows each
  EXPECT_EQ(found.best(3), std::vector<std::size_t>{3});
  EXPECT_NOTICE(found.notices, "sure: some rows were not read");
  EXPECT_EQ(std::count(found.notices.begin(), found.notices.end(), "sure: some rows were not read"), 1);
}

TEST(Evaluation, RefusesTablesThatFoldsCannotBeMadeOf) {
  const auto models = pfn::baseline_candidates(pfn::Task::classification);
  const pfn::Table rare = csv_table("x,y\n1,a\n2,a\n3,a\n4,a\n5,a\n6,b\n7,b\n8,b\n");
  expect_part(value_error([&] { pfn::evaluate(rare, "y", models); }),
              "class 'b' of target 'y' has 3 rows: 5 folds need one in each; ask for at most 3 folds");
  pfn::EvaluationConfig config;
  config.folds = 3;
  EXPECT_EQ(pfn::evaluate(rare, "y", models, config).validation.folds.size(), 3u);
  config.folds = 1;
  expect_part(value_error([&] { pfn::evaluate(rare, "y", models, config); }), "1 folds of 8 rows");
  const pfn::Table once = csv_table("x,y\n1,a\n2,a\n3,b\n");
  expect_part(value_error([&] { pfn::evaluate(once, "y", models); }),
              "has 1 row: 5 folds need one in each; leave");
  expect_part(value_error([&] { pfn::evaluate(signal_table(8), "y", models); }), "ask for at most 4 folds");
  expect_part(value_error([&] { pfn::evaluate(rare, "y", {}); }), "no models");
}

}  // namespace
}  // namespace ferrite::testing
