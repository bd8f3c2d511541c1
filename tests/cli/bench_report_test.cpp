// The parts of `ferrite bench` that compute without measuring: rates, means, comparisons, scales, texts.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "cli/bench/compare.hpp"
#include "cli/bench/page.hpp"
#include "cli/bench/plot.hpp"
#include "cli/bench/process.hpp"
#include "cli/bench/summary.hpp"
#include "ferrite/core/error.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

using namespace cli::bench;

Figure timed(double seconds) {
  Figure figure;
  figure.times = Times{seconds, seconds / 2, 20, 1};
  return figure;
}

Report small_report() {
  Report report;
  report.columns = {{"reference", "plain loops"}, {"cpu", "the <fast> one"}, {"numpy", "NumPy", true}};
  for (const char* size : {"1K", "10K", "100K"})
    report.rows.push_back({"copy", "f32", size, Bound::bytes, 1e6, 8e6, {}});
  report.rows.push_back({"matmul", "f32", "128", Bound::flops, 4e6, 2e5, {}});
  for (ResultRow& row : report.rows)
    row.figures = {{"reference", timed(8e-3)}, {"cpu", timed(1e-3)}, {"numpy", timed(2e-3)}};
  return report;
}

TEST(BenchReport, ARowThatFailsIsWrongAndNamed) {
  Report report = small_report();
  EXPECT_FALSE(report.is_any_wrong());
  report.rows[1].figures["numpy"] = {{}, {}, false, "no memory", true};
  EXPECT_FALSE(report.is_any_wrong());  // a peer's affair
  report.rows[1].figures["cpu"] = {{}, {}, false, "no memory", true};
  EXPECT_TRUE(report.is_any_wrong());
  EXPECT_NE(summary(report).find("! copy/f32/10K cpu: no memory"), std::string::npos) << summary(report);
  const RunComparison comparison = compare(small_report(), report, By::median);
  ASSERT_EQ(comparison.wrong_after.size(), 2u);
  EXPECT_EQ(comparison.wrong_after[0], "copy/f32/10K cpu: no memory");
}

TEST(BenchReport, GivesRatesAndSpeedUps) {
  const Report report = small_report();
  EXPECT_DOUBLE_EQ(*report.rows[0].rate("cpu"), 8e9);
  EXPECT_DOUBLE_EQ(*report.rows[3].rate("cpu"), 4e9);
  EXPECT_DOUBLE_EQ(*report.rows[0].speed_up("cpu", "reference"), 8);
  EXPECT_FALSE(report.rows[0].rate("cuda"));
  EXPECT_FALSE(report.rows[0].speed_up("cuda", "cpu"));
}

TEST(BenchReport, ComesBackFromItsFile) {
  Report report = small_report();
  report.rows[0].figures["cpu"].error = std::nan("");
  report.rows[0].figures["cpu"].is_over = true;
  report.rows[1].figures["reference"] = {{}, {}, false, "too large"};
  report.notes = {"cuda: no GPU"};
  const ScratchFolder folder;
  const std::string path = (folder / "report.json").string();
  std::ofstream(path) << to_json(report).dump();
  const Report read = read_report(path);
  EXPECT_EQ(to_json(read), to_json(report));
  EXPECT_TRUE(std::isnan(*read.rows[0].error("cpu")));
  EXPECT_TRUE(read.is_any_wrong());
  EXPECT_FALSE(read.rows[1].seconds("reference"));
}

TEST(BenchReport, OnlyErrorsOfItsOwnBackendsAreFaults) {
  Report report = small_report();
  report.rows[0].figures["numpy"].is_over = true;
  EXPECT_FALSE(report.is_any_wrong());
  report.rows[0].figures["cpu"].is_over = true;
  EXPECT_TRUE(report.is_any_wrong());
}

TEST(BenchReport, FormatsThreeDigits) {
  EXPECT_EQ(time_text(1.234e-7), "123 ns");
  EXPECT_EQ(time_text(9.999e-4), "1.00 ms");
  EXPECT_EQ(time_text(1234), "1234 s");
  EXPECT_EQ(rate_text(45.67e9, Bound::bytes), "45.7 GB/s");
  EXPECT_EQ(rate_text(1.5e15, Bound::flops), "1500 TFLOP/s");
  EXPECT_EQ(short_text(0.25), "0.25");
  EXPECT_EQ(short_text(1534.2), "1534");
  EXPECT_EQ(short_text(3e-7), "3e-7");
}

TEST(BenchReport, MeansAndMedians) {
  EXPECT_DOUBLE_EQ(geometric_mean({2, 8}), 4);
  EXPECT_DOUBLE_EQ(geometric_mean({}), 1);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({5}), 5);
}

TEST(BenchCompare, SortsTheWorstFirst) {
  const Report before = small_report();
  Report after = small_report();
  after.rows[1].figures["cpu"] = timed(2e-3);
  after.rows[3].figures["cpu"] = timed(0.5e-3);
  after.rows[2].figures.erase("numpy");
  const RunComparison result = compare(before, after, By::median);
  ASSERT_EQ(result.changes.size(), 11u);
  EXPECT_EQ(result.changes.front().row, "copy/f32/10K");
  EXPECT_DOUBLE_EQ(result.changes.front().ratio(), 0.5);
  EXPECT_DOUBLE_EQ(result.changes.back().ratio(), 2);
  EXPECT_DOUBLE_EQ(result.mean_ratio(), 1);
  EXPECT_EQ(result.count_below(0.95), 1u);
  EXPECT_EQ(result.only_before, std::vector<std::string>{"copy/f32/100K numpy"});
  EXPECT_TRUE(result.only_after.empty());
  EXPECT_TRUE(result.warnings.empty());
}

TEST(BenchPlot, ScalesAreLogarithmic) {
  const LogScale scale({1, 100}, 0, 300);
  EXPECT_NEAR(scale.at(10), 150, 1e-9);
  EXPECT_GT(scale.at(1), 0);
  EXPECT_LT(scale.at(100), 300);
  const LogScale upwards({1, 100}, 300, 0);
  EXPECT_GT(upwards.at(1), upwards.at(100));
  EXPECT_NEAR(LogScale({5}, 0, 10).at(5), 5, 1e-9);
}

TEST(BenchPlot, TicksFitTheAxis) {
  EXPECT_EQ(LogScale({1, 1e5}, 0, 1).ticks(), (std::vector<double>{1, 10, 100, 1e3, 1e4, 1e5}));
  EXPECT_EQ(LogScale({1, 90}, 0, 1).ticks(), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(LogScale({1, 2}, 0, 1).ticks(), (std::vector<double>{1, 1.5, 2}));
}

TEST(BenchPage, TheLargestCopyHasTheMostBytes) {
  Report report = small_report();
  report.rows.push_back({"copy", "bf16", "100K", Bound::bytes, 1e6, 4e6, {{"cpu", timed(1e-3)}}});
  EXPECT_NE(page(report).find("<b>8.00 GB/s</b>largest copy on cpu"), std::string::npos);
}

TEST(BenchPage, HasEveryColumnAndEscapesNames) {
  const std::string text = page(small_report());
  EXPECT_NE(text.find("the &lt;fast&gt; one"), std::string::npos);
  EXPECT_NE(text.find("Scaling with size"), std::string::npos);
  EXPECT_NE(text.find("copy of numpy"), std::string::npos);
  EXPECT_EQ(text.find("{{"), std::string::npos);
  EXPECT_NE(page(Report{}).find("Nothing was measured"), std::string::npos);
}

TEST(BenchSummary, HasALinePerRow) {
  const std::string text = summary(small_report());
  EXPECT_NE(text.find("matmul/f32/128"), std::string::npos);
  EXPECT_NE(text.find("numpy: 0.5x the speed of cpu, geometric mean of 4 rows"), std::string::npos) << text;
}

TEST(BenchProcess, TalksByLines) {
  Process echo({"cat"}, {});
  echo.write_line("one");
  echo.write_line("two");
  EXPECT_EQ(echo.read_line(), "one");
  EXPECT_EQ(echo.read_line(), "two");
  Process environment({"sh", "-c", "echo $FERRITE_TEST"}, {"FERRITE_TEST=here"});
  EXPECT_EQ(environment.read_line(), "here");
  EXPECT_EQ(environment.read_line(), std::nullopt);
  environment.write_line("nobody hears this");
  EXPECT_THROW(Process({"no-such-program"}, {}), IoError);
}

}  // namespace
}  // namespace ferrite::testing
