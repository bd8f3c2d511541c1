// Regressors of tables, and the distributions they give.
#include "ferrite/models/pfn/regressor.hpp"

#include "models/pfn/pfn_predictors.hpp"

namespace ferrite::testing {
namespace {

using pfn::LabelDistributions;
using pfn::Regressor;
using pfn::Table;
using pfn::Task;
using Part = LabelDistributions::Part;

std::vector<double> some_probabilities(std::int64_t rows, std::int64_t bins, std::uint64_t seed) {
  std::vector<double> p;
  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < bins; ++i) {
      p.push_back(std::exp(normal_at<double>({seed, 0}, static_cast<std::uint64_t>(r * bins + i))));
      sum += p.back();
    }
    for (std::int64_t i = 0; i < bins; ++i) p[p.size() - static_cast<std::size_t>(i) - 1] /= sum;
  }
  return p;
}

TEST(LabelDistributions, OnePartIsWhatLabelBinsSay) {
  constexpr std::int64_t rows = 6, bins = 12;
  const std::vector<double> p = some_probabilities(rows, bins, 1);
  const LabelDistributions y(rows, bins, {Part{100, 5, 1, p}});
  Reference backend;
  const pfn::LabelBins<Reference> reference(backend, bins);
  const auto logits = log(from_vector(backend, p, {rows, bins}));
  const auto in_units = [](const auto& z) { return (z * 5 + 100).template to_vector<double>(); };
  expect_near(y.mean(), in_units(reference.mean(logits)), 1e-3);
  for (const double level : {0.001, 0.05, 0.3, 0.5, 0.9, 0.999})
    expect_near(y.quantile(level), in_units(reference.quantile(logits, level)), 1e-3);
  EXPECT_EQ(y.median(), y.quantile(0.5));
  EXPECT_THROW(y.quantile(0), ValueError);
  EXPECT_THROW(y.quantile(1), ValueError);
  EXPECT_THROW(LabelDistributions(2, bins, {Part{0, 1, 1, p}}), ValueError);
  EXPECT_THROW(LabelDistributions(rows, bins, {}), ValueError);
}

TEST(LabelDistributions, PartsThatDisagreeAreUnsureTogether) {
  constexpr std::int64_t bins = 40;
  const std::vector<double> p(bins, 1.0 / bins);
  const LabelDistributions low(1, bins, {Part{0, 1, 1, p}}), high(1, bins, {Part{100, 1, 1, p}});
  const LabelDistributions both(1, bins, {Part{0, 1, 0.25, p}, Part{100, 1, 0.75, p}});
  EXPECT_NEAR(both.mean()[0], 75, 1e-9);
  EXPECT_NEAR(both.quantile(0.125)[0], low.quantile(0.5)[0], 1e-6);  // half of the quarter
  EXPECT_NEAR(both.quantile(0.625)[0], high.quantile(0.5)[0], 1e-6);
  EXPECT_NEAR(both.quantile(0.05)[0], low.quantile(0.2)[0], 1e-6);
  // The same twice is the same once.
  const LabelDistributions twice(1, bins, {Part{0, 1, 0.5, p}, Part{0, 1, 0.5, p}});
  for (const double level : {0.01, 0.4, 0.99})
    EXPECT_NEAR(twice.quantile(level)[0], low.quantile(level)[0], 1e-9);
  // A part without spread is a step.
  const LabelDistributions step(1, bins, {Part{0, 1, 0.5, p}, Part{3, 0, 0.5, p}});
  EXPECT_NEAR(step.quantile(0.6)[0], 3, 1e-9);
}

struct RegressorTest : ::testing::Test {
  SmallWeights weights;
  pfn::PredictorConfig config = weights.config(Task::regression);
};

TEST_F(RegressorTest, AMemberIsTheNetworkOnTheEncodedTable) {
  const Table train = mixed_table(20, 0), test = mixed_table(5, 0, 2);
  Regressor model(config.with_members(1));
  const LabelDistributions y = model.fit(train, "y").predict(test);
  Cpu cpu;
  auto network = pfn::load(cpu, weights.path(Task::regression));
  const auto rows = model.encoder().transform(train), asked = model.encoder().transform(test);
  const auto x = [&](const pfn::EncodedTable& t) { return from_vector(cpu, t.x, {1, t.rows, 3}); };
  const auto context = network.forward_context(x(rows), from_vector(cpu, std::vector<float>{0, 0, 1}, {1, 3}),
                                               from_vector(cpu, rows.targets, {1, 20}));
  const auto logits = network.predict(context, x(asked));
  const auto in_units = [&](const auto& z) { return context.in_units(z).template to_vector<double>(); };
  expect_near(y.mean(), in_units(network.bins().mean(logits)), 1e-2);
  expect_near(y.median(), in_units(network.bins().median(logits)), 1e-2);
  expect_near(y.quantile(0.95), in_units(network.bins().quantile(logits, 0.95)), 1e-2);
}

TEST_F(RegressorTest, GivesDistributionsInTheUnitsOfTheLabels) {
  const Table train = mixed_table(60, 0), test = mixed_table(9, 0, 2);
  Regressor model(config);
  const LabelDistributions y = model.fit(train, "y").predict(test);
  const std::vector<double> low = y.quantile(0.05), median = y.median(), high = y.quantile(0.95);
  for (std::size_t r = 0; r < 9; ++r) {
    EXPECT_LT(low[r], median[r]);
    EXPECT_LT(median[r], high[r]);
    EXPECT_NEAR(y.mean()[r], 1000, 200);
  }
  // Labels that are moved and scaled move and scale predictions, also where f32 could not tell them apart.
  Table far = train;
  std::vector<double> seconds = train.find("y")->numbers;
  for (double& s : seconds) s = 1.7e9 + s / 100;
  Table moved;
  for (const char* name : {"a", "b", "c"}) moved.add(*train.find(name));
  moved.add_numbers("y", seconds);
  std::vector<double> back = Regressor(config).fit(moved, "y").predict(test).median();
  for (double& s : back) s = (s - 1.7e9) * 100;
  expect_near(back, median, 0.05);
}

TEST_F(RegressorTest, RowsArePredictedTheSameInAnyCompany) {
  const Table train = mixed_table(40, 0), test = mixed_table(23, 0, 2);
  Regressor model(config.with_query_rows(4));
  const std::vector<double> whole = model.fit(train, "y").predict(test).mean();
  const std::vector<std::int64_t> taken{20, 3, 11};
  const std::vector<double> some = Regressor(config).fit(train, "y").predict(test.take(taken)).mean();
  expect_near(some, {whole[20], whole[3], whole[11]}, 1e-3);
}

TEST_F(RegressorTest, SampledMembersKeepTheirOwnScales) {
  const Table train = mixed_table(300, 0), test = mixed_table(9, 0, 2);
  Regressor model(config.with_context_rows(40));
  const LabelDistributions y = model.fit(train, "y").predict(test);
  EXPECT_NOTICE(model.notices(), "of 300 train rows, samples of 40");
  for (std::size_t r = 0; r < 9; ++r) EXPECT_NEAR(y.mean()[r], 1000, 200);
}

TEST_F(RegressorTest, BackendsAgree) {
  const Table train = mixed_table(25, 0), test = mixed_table(7, 0, 2);
  const auto y = [&](const char* backend) {
    return Regressor(config.with_backend(backend)).fit(train, "y").predict(test).quantile(0.9);
  };
  expect_near(y("reference"), y("cpu"), 1e-2);
}

TEST_F(RegressorTest, ModelsForCrossValidation) {
  const Table table = mixed_table(50, 0);
  const pfn::FitPredict model = pfn::fit_predict(config);
  const pfn::EncodedTable rows = pfn::TableEncoder::fit(table, "y").transform(table);
  Regressor same(config);
  EXPECT_EQ(model(rows, rows), same.fit(table, "y").predict(table).mean());
}

}  // namespace
}  // namespace ferrite::testing
