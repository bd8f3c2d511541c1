// Metrics are those of scikit-learn to 1e-12, and importance finds the columns that matter.
#include "ferrite/models/pfn/metrics.hpp"

#include <gtest/gtest.h>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/models/pfn/report.hpp"
#include "sklearn_reference.hpp"

namespace ferrite::testing {
namespace {

using Doubles = std::vector<double>;
using Classes = std::vector<std::int32_t>;
using Flags = std::vector<std::uint8_t>;

constexpr double nearly = 1e-12;

class ClassMetrics : public ::testing::TestWithParam<const char*> {};

TEST_P(ClassMetrics, AreThoseOfSklearn) {
  const auto& expected = sklearn_reference()["metrics"][GetParam()];
  const auto classes = expected["classes"].get<Classes>();
  const auto p = expected["probabilities"].get<Doubles>();
  const auto width = static_cast<std::int64_t>(p.size() / classes.size());
  EXPECT_NEAR(pfn::auc(p, classes, width), expected["auc"].get<double>(), nearly);
  EXPECT_NEAR(pfn::log_loss(p, classes, width), expected["log_loss"].get<double>(), nearly);
  EXPECT_NEAR(pfn::accuracy(p, classes, width), expected["accuracy"].get<double>(), nearly);

  Doubles one;
  for (std::size_t r = 0; r < classes.size(); ++r) one.push_back(p[r * static_cast<std::size_t>(width) + 1]);
  const Flags positive = pfn::is_class(classes, 1);
  const auto points = pfn::roc(one, positive);
  const auto& roc = expected["roc"];
  ASSERT_EQ(points.size(), roc["false"].size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_NEAR(points[i].false_rate, roc["false"][i].get<double>(), nearly);
    EXPECT_NEAR(points[i].true_rate, roc["true"][i].get<double>(), nearly);
    if (i > 0) {
      EXPECT_NEAR(points[i].threshold, roc["thresholds"][i - 1].get<double>(), nearly);
    }
  }
  const auto bins = pfn::calibration(one, positive, 8);
  const auto& calibration = expected["calibration"];
  ASSERT_EQ(bins.size(), calibration["observed"].size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_NEAR(bins[i].observed, calibration["observed"][i].get<double>(), nearly);
    EXPECT_NEAR(bins[i].predicted, calibration["predicted"][i].get<double>(), nearly);
  }
}
INSTANTIATE_TEST_SUITE_P(Sklearn, ClassMetrics, ::testing::Values("binary", "five"));

TEST(Metrics, SquaresNeitherOverflowNorVanish) {
  const Doubles targets{1, -1, 0.5, 0.25}, predictions{0.5, -1, 0.5, -0.25};
  for (const double unit : {1e-310, 1e-200, 1e154, 1e308}) {
    Doubles y, p;
    for (const double v : targets) y.push_back(v * unit);
    for (const double v : predictions) p.push_back(v * unit);
    EXPECT_NEAR(pfn::r2(p, y), pfn::r2(predictions, targets), 1e-9) << unit;
    EXPECT_NEAR(pfn::rmse(p, y) / unit, pfn::rmse(predictions, targets), 1e-9) << unit;
    EXPECT_NEAR(pfn::mae(p, y) / unit, pfn::mae(predictions, targets), 1e-9) << unit;
    EXPECT_NEAR(pfn::spread_of(y).deviation / unit, pfn::spread_of(targets).deviation, 1e-9) << unit;
  }
}

TEST(Metrics, OfNumbersAreThoseOfSklearn) {
  const auto& expected = sklearn_reference()["metrics"]["regression"];
  const auto targets = expected["targets"].get<Doubles>(),
             predictions = expected["predictions"].get<Doubles>();
  EXPECT_NEAR(pfn::r2(predictions, targets), expected["r2"].get<double>(), nearly);
  EXPECT_NEAR(pfn::rmse(predictions, targets), expected["rmse"].get<double>(), nearly);
  EXPECT_NEAR(pfn::pinball(predictions, targets, 0.1), expected["pinball_10"].get<double>(), nearly);
  EXPECT_NEAR(pfn::pinball(predictions, targets, 0.5), expected["pinball_50"].get<double>(), nearly);
}

TEST(Metrics, HaveTheirValuesAtTheEdges) {
  EXPECT_EQ(pfn::binary_auc(Doubles{0.5, 0.5, 0.5}, Flags{1, 0, 1}), 0.5);
  EXPECT_EQ(pfn::binary_auc(Doubles{3, 1, 2}, Flags{1, 0, 0}), 1);
  // The third class is in no row: the mean is over the first two, of one against the other.
  EXPECT_EQ(pfn::auc(Doubles{0.8, 0.1, 0.1, 0.2, 0.7, 0.1}, Classes{0, 1}, 3), 1);
  EXPECT_NEAR(pfn::log_loss(Doubles{1, 0}, Classes{1}, 2), -std::log(0x1p-52), nearly);
  EXPECT_EQ(pfn::r2(Doubles{2, 2}, Doubles{2, 2}), 1);
  EXPECT_EQ(pfn::r2(Doubles{2, 3}, Doubles{2, 2}), 0);
  EXPECT_EQ(pfn::most_likely(Doubles{0.5, 0.5, 0.2, 0.8}, 2), (Classes{0, 1}));
  const std::vector<pfn::CalibrationBin> bins{{0.1, 0.2, 30}, {0.9, 0.5, 10}};
  EXPECT_NEAR(pfn::calibration_error(bins), (3 + 4) / 40.0, nearly);
}

TEST(Metrics, RefuseWhatDoesNotFit) {
  EXPECT_THROW(pfn::binary_auc(Doubles{1, 2}, Flags{1, 1}), ValueError);
  EXPECT_THROW(pfn::binary_auc(Doubles{1}, Flags{1, 0}), ValueError);
  EXPECT_THROW(pfn::binary_auc(Doubles{1, NAN}, Flags{1, 0}), ValueError);
  EXPECT_THROW(pfn::auc(Doubles{1, 0, 1, 0}, Classes{1, 1}, 2), ValueError);
  EXPECT_THROW(pfn::log_loss(Doubles{1, 0}, Classes{-1}, 2), ValueError);
  EXPECT_THROW(pfn::log_loss(Doubles{1, 0}, Classes{2}, 2), ValueError);
  EXPECT_THROW(pfn::accuracy(Doubles{1}, Classes{0}, 1), ValueError);
  EXPECT_THROW(pfn::rmse(Doubles{}, Doubles{}), ValueError);
  EXPECT_THROW(pfn::r2(Doubles{1}, Doubles{NAN}), ValueError);
  EXPECT_THROW(pfn::pinball(Doubles{1}, Doubles{1}, 1.5), ValueError);
  EXPECT_THROW(pfn::calibration(Doubles{1.5}, Flags{1}), ValueError);
}

TEST(Importance, FindsTheColumnsThatMatter) {
  pfn::EncodedTable rows;
  rows.task = pfn::Task::regression;
  rows.features = {{"day", "day", false, 0}, {"day (month)", "day", false, 0}, {"noise", "noise", false, 0}};
  rows.rows = 200;
  for (std::uint64_t r = 0; r < 200; ++r) {
    const float day = normal_at<float>({1, 1}, r);
    rows.x.insert(rows.x.end(), {day, -day, normal_at<float>({1, 2}, r)});
    rows.targets.push_back(static_cast<double>(day));
  }
  const pfn::EncodedTable before = rows;
  // The prediction needs both parts of the day from one row; dealt together, they still belong together.
  const pfn::Predict predict = [](const pfn::EncodedTable& table) {
    Doubles out;
    for (std::int64_t r = 0; r < table.rows; ++r) {
      EXPECT_EQ(table.row(r)[0], -table.row(r)[1]);
      out.push_back(static_cast<double>(table.row(r)[0]));
    }
    return out;
  };
  const auto found = pfn::permutation_importance(rows, predict, pfn::default_score, 4, 7);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].column, "day");
  EXPECT_NEAR(found[0].mean, 2, 0.4);  // from R2 = 1 to about -1
  EXPECT_GT(found[0].deviation, 0);
  EXPECT_EQ(found[1].mean, 0);
  const auto again = pfn::permutation_importance(rows, predict, pfn::default_score, 4, 7);
  EXPECT_EQ(again[0].mean, found[0].mean);
  const auto one = pfn::permutation_importance(rows, predict, pfn::default_score, 4, 7, {found[1].column});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].column, found[1].column);
  EXPECT_EQ(rows.x, before.x);
  EXPECT_THROW(pfn::permutation_importance(rows, predict, pfn::default_score, 0), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
