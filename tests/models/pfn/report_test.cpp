// What a report shows has the numbers of scikit-learn and NumPy.
#include "ferrite/models/pfn/report.hpp"

#include "pfn_tables.hpp"
#include "sklearn_reference.hpp"

namespace ferrite::testing {
namespace {

using Doubles = std::vector<double>;
using Classes = std::vector<std::int32_t>;
using Counts = std::vector<std::int64_t>;

constexpr double close = 1e-12;

struct FiveClasses {
  const nlohmann::json& expected = sklearn_reference()["metrics"]["five"];
  Classes classes = expected["classes"].get<Classes>();
  Doubles p = expected["probabilities"].get<Doubles>();
};

TEST(Report, MeanRocIsThatOfSklearn) {
  const FiveClasses five;
  const auto curve = pfn::average_roc(five.p, five.classes, 5);
  const auto& expected = five.expected["mean_roc"];
  ASSERT_EQ(curve.size(), expected["false"].size() + 1);  // (0, 0) comes first
  EXPECT_EQ(curve[0].x, 0);
  EXPECT_EQ(curve[0].y, 0);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    EXPECT_NEAR(curve[i].x, expected["false"][i - 1].get<double>(), close);
    EXPECT_NEAR(curve[i].y, expected["true"][i - 1].get<double>(), close);
  }
  EXPECT_NEAR(pfn::area_under(curve), expected["area"].get<double>(), close);
}

TEST(Report, OfTwoClassesTheSecondIsShown) {
  const auto& expected = sklearn_reference()["metrics"]["binary"];
  const auto classes = expected["classes"].get<Classes>();
  const auto p = expected["probabilities"].get<Doubles>();
  EXPECT_NEAR(pfn::area_under(pfn::average_roc(p, classes, 2)), expected["auc"].get<double>(), close);
  EXPECT_EQ(pfn::confusion(p, classes, 2), expected["confusion"].get<Counts>());
  const auto bins = pfn::reliability(p, classes, 2, 8);
  const auto& calibration = expected["calibration"];
  ASSERT_EQ(bins.size(), calibration["observed"].size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_NEAR(bins[i].observed, calibration["observed"][i].get<double>(), close);
    EXPECT_NEAR(bins[i].predicted, calibration["predicted"][i].get<double>(), close);
  }
}

TEST(Report, ReliabilityOfManyClassesIsOfTheMostLikely) {
  const FiveClasses five;
  const auto bins = pfn::reliability(five.p, five.classes, 5);
  const auto& expected = five.expected["reliability"];
  ASSERT_EQ(bins.size(), expected["observed"].size());
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_NEAR(bins[i].observed, expected["observed"][i].get<double>(), close);
    EXPECT_NEAR(bins[i].predicted, expected["predicted"][i].get<double>(), close);
    rows += bins[i].rows;
  }
  EXPECT_EQ(rows, 60);
  EXPECT_EQ(pfn::confusion(five.p, five.classes, 5), five.expected["confusion"].get<Counts>());
}

TEST(Report, ResidualsAreThoseOfNumpy) {
  const auto& expected = sklearn_reference()["metrics"]["regression"];
  const auto targets = expected["targets"].get<Doubles>(),
             predictions = expected["predictions"].get<Doubles>();
  EXPECT_NEAR(pfn::mae(predictions, targets), expected["mae"].get<double>(), close);
  Doubles residuals;
  for (std::size_t r = 0; r < targets.size(); ++r) residuals.push_back(targets[r] - predictions[r]);
  const auto bins = pfn::histogram(residuals, 7);
  ASSERT_EQ(bins.size(), 7u);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    EXPECT_EQ(bins[i].rows, expected["residuals"]["counts"][i].get<std::int64_t>());
    EXPECT_NEAR(bins[i].low, expected["residuals"]["edges"][i].get<double>(), close);
    EXPECT_NEAR(bins[i].high, expected["residuals"]["edges"][i + 1].get<double>(), close);
  }
  EXPECT_EQ(pfn::histogram(Doubles{2, 2}, 2)[1].rows, 2);  // around a single number
}

TEST(Report, SpreadsAndIntervals) {
  const pfn::Spread spread = pfn::spread_of(Doubles{1, 2, 3, 6});
  EXPECT_EQ(spread.mean, 3);
  EXPECT_NEAR(spread.deviation, std::sqrt(14.0 / 3), close);
  EXPECT_EQ(pfn::spread_of(Doubles{4}).deviation, 0);
  const pfn::Intervals intervals{{0, 0, 0, 0}, {1, 1, 1, 3}};
  EXPECT_EQ(pfn::coverage(intervals, Doubles{0, 1, 1.5, -1}), 0.5);
  EXPECT_EQ(pfn::mean_width(intervals), 1.5);
}

TEST(Report, ThinnedCurvesKeepTheirEnds) {
  std::vector<pfn::CurvePoint> line;
  for (int i = 0; i <= 1000; ++i) line.push_back({i / 1000.0, i / 1000.0});
  const auto thin = pfn::thinned(line, 0.1);
  EXPECT_LT(thin.size(), 13u);
  EXPECT_EQ(thin.front().x, 0);
  EXPECT_EQ(thin.back().x, 1);
  EXPECT_NEAR(pfn::area_under(thin), 0.5, close);
}

TEST(Report, ATableIsSummedUp) {
  const pfn::Table table = csv_table("n,t,d,m,y\n1,a,2024-01-01,,p\n,b,2024-01-02,4,q\n3,,2024-01-03,5,\n");
  const pfn::TableSummary summary = pfn::summary_of(table, "y");
  EXPECT_EQ(summary.rows, 3);
  EXPECT_EQ(summary.numbers, 2);
  EXPECT_EQ(summary.texts, 1);
  EXPECT_EQ(summary.dates, 1);
  EXPECT_EQ(summary.columns(), 4);
  EXPECT_EQ(summary.missing_cells, 3);
  EXPECT_EQ(summary.missing_targets, 1);
  const std::vector<std::pair<std::string, std::int64_t>> missing{{"n", 1}, {"t", 1}, {"m", 1}};
  EXPECT_EQ(summary.missing, missing);
}

TEST(Report, RefusesWhatDoesNotFit) {
  EXPECT_THROW(pfn::average_roc(Doubles{1, 0, 1, 0}, Classes{1, 1}, 2), ValueError);
  EXPECT_THROW(pfn::confusion(Doubles{1, 0}, Classes{2}, 2), ValueError);
  EXPECT_THROW(pfn::reliability(Doubles{1, 0, 0}, Classes{0}, 2), ValueError);
  EXPECT_THROW(pfn::column_of(Doubles{1, 0}, 2, 2), ValueError);
  EXPECT_THROW(pfn::column_of(Doubles{1, 0, 1}, 2, 0), ValueError);
  EXPECT_THROW(pfn::spread_of(Doubles{}), ValueError);
  EXPECT_THROW(pfn::histogram(Doubles{1, NAN}), ValueError);
  EXPECT_THROW(pfn::histogram(Doubles{1}, 0), ValueError);
  EXPECT_THROW(pfn::coverage({{0}, {1}}, Doubles{1, 2}), ValueError);
  EXPECT_THROW(pfn::mean_width({{0}, {}}), ValueError);
}

}  // namespace
}  // namespace ferrite::testing
