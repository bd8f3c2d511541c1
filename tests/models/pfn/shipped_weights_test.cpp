// The weights that come with ferrite know what they are for: they beat linear models on tables that they have
// never seen, whose columns stand in any order.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/models/pfn/baselines.hpp"
#include "ferrite/models/pfn/classifier.hpp"
#include "ferrite/models/pfn/file.hpp"
#include "ferrite/models/pfn/metrics.hpp"
#include "ferrite/models/pfn/regressor.hpp"

namespace ferrite::pfn {
namespace {

/// Two interleaved arcs with noise, and three columns that say nothing: no line separates them.
Table arcs(std::int64_t rows) {
  Rng rng(5);
  Cpu cpu;
  const auto noise = randn(cpu, {rows, 5}, rng).to_vector(), angle = rand(cpu, {rows}, rng).to_vector();
  std::vector<std::vector<double>> columns(5);
  std::vector<std::string> kinds;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    const double turn = 3.14159265 * static_cast<double>(angle[at]);
    const bool upper = r % 2 == 0;
    const double place[] = {upper ? std::cos(turn) : 1 - std::cos(turn),
                            upper ? std::sin(turn) : 0.5 - std::sin(turn), 0, 0, 0};
    for (std::size_t c = 0; c < 5; ++c)
      columns[c].push_back(place[c] + (c < 2 ? 0.15 : 1.0) * static_cast<double>(noise[5 * at + c]));
    kinds.push_back(upper ? "upper" : "lower");
  }
  Table table;
  for (const std::size_t c : {3u, 0u, 2u, 4u, 1u}) table.add_numbers("c" + std::to_string(c), columns[c]);
  table.add_texts("kind", kinds);
  return table;
}

TEST(PfnShippedWeights, LearnWhatNoLineCanTell) {
  const Table all = arcs(300);
  std::vector<std::int64_t> places(300);
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const Table known = all.take(std::span(places).first(150)),
              asked = all.take(std::span(places).subspan(150));
  Classifier model(PredictorConfig{}.with_backend("cpu").with_members(2));
  model.fit(known, "kind");
  EXPECT_EQ(model.classes(), (std::vector<std::string>{"lower", "upper"}));
  const EncodedTable truth = model.encoder().transform(asked);
  const auto linear = linear_model();
  linear->fit(model.encoder().transform(known));
  EXPECT_LT(auc(linear->predict(truth), truth.classes, 2), 0.98);
  EXPECT_GT(auc(model.predict_proba(asked), truth.classes, 2), 0.99);
}

/// A price with a long tail: exp of a product and a wave, with noise, and two columns that say nothing.
Table prices(std::int64_t rows) {
  Rng rng(6);
  Cpu cpu;
  const auto x = randn(cpu, {rows, 5}, rng).to_vector();
  std::vector<std::vector<double>> columns(5);
  for (std::size_t i = 0; i < x.size(); ++i) columns[i % 5].push_back(static_cast<double>(x[i]));
  std::vector<double> price;
  for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r)
    price.push_back(1e5 * std::exp(0.4 * columns[0][r] * columns[1][r] + 0.5 * std::sin(2 * columns[2][r]) +
                                   0.05 * columns[3][r]));
  Table table;
  for (const std::size_t c : {4u, 1u, 0u, 2u}) table.add_numbers("c" + std::to_string(c), columns[c]);
  table.add_numbers("price", price);
  return table;
}

TEST(PfnShippedWeights, PredictNumbersThatNoPlaneCanTell) {
  const Table all = prices(400);
  std::vector<std::int64_t> places(400);
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const Table known = all.take(std::span(places).first(250)),
              asked = all.take(std::span(places).subspan(250));
  Regressor model(PredictorConfig{}.with_backend("cpu").with_members(2));
  const LabelDistributions y = model.fit(known, "price").predict(asked);
  const EncodedTable truth = model.encoder().transform(asked);
  const auto linear = linear_model();
  linear->fit(model.encoder().transform(known));
  EXPECT_LT(r2(linear->predict(truth), truth.targets), 0.3);
  EXPECT_GT(r2(y.mean(), truth.targets), 0.7);
  const std::vector<double> low = y.quantile(0.05), high = y.quantile(0.95);
  int inside = 0;
  for (std::size_t i = 0; i < low.size(); ++i)
    inside += low[i] <= truth.targets[i] && truth.targets[i] <= high[i];
  EXPECT_GT(inside, 115) << "of 150, where 135 are expected";
  // Intervals that hold nearly all targets whatever the columns say are as wide as the middle 90 % of those.
  double width = 0;
  for (std::size_t i = 0; i < low.size(); ++i) width += (high[i] - low[i]) / static_cast<double>(low.size());
  std::vector<double> sorted = truth.targets;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_LT(width, 0.4 * (sorted[142] - sorted[7])) << "0.21 to 0.27 on four other draws of such tables";
}

TEST(PfnShippedWeights, SayHowTheyWereMade) {
  for (const Task task : {Task::classification, Task::regression}) {
    const std::filesystem::path path = default_weights(task);
    EXPECT_EQ(read_config(path).task, task);
    EXPECT_LE(std::filesystem::file_size(path), 10u << 20);
    const auto settings = train::read_settings(path);
    EXPECT_NE(settings.at("schedule").find(task == Task::classification ? "42500 steps" : "34000 steps"),
              std::string::npos);
    EXPECT_NE(settings.at("data").find("mlp_scm"), std::string::npos);
  }
  EXPECT_EQ(read_config(default_weights(Task::classification)).classes, 10);
}

}  // namespace
}  // namespace ferrite::pfn
