// The progress bar: what it writes, and that it is silent where nobody watches.
#include "ferrite/train/observer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ferrite::train {
namespace {

/// A stream in memory.
class Sheet {
 public:
  Sheet() : file_(std::tmpfile()) {}
  ~Sheet() { std::fclose(file_); }
  std::FILE* stream() { return file_; }
  std::string text() {
    std::rewind(file_);
    std::string result(4096, '\0');
    result.resize(std::fread(result.data(), 1, result.size(), file_));
    return result;
  }

 private:
  std::FILE* file_;
};

const Progress half_way{50, 100, 2, 0.12345, 0.001, 1234.4, 75};

TEST(ProgressBar, ShowsStepLossRateSpeedAndTimeLeft) {
  Sheet sheet;
  ProgressBar bar(sheet.stream(), Show::always);
  bar.on_progress(half_way);
  EXPECT_EQ(sheet.text(),
            "\r\x1b[K[============            ] 50/100  loss 0.1235  lr 1.00e-03  1234 samples/s  ETA 1:15");
}

TEST(ProgressBar, EvaluationsStayAboveTheBarAndTheEndClosesTheLine) {
  Sheet sheet;
  ProgressBar bar(sheet.stream(), Show::always);
  bar.on_progress({100, 100, 2, 0.5, 0.001, 10, 0});
  bar.on_evaluation(100, {{{"loss", 0.25}, {"accuracy", 0.975}}});
  bar.on_finish();
  const std::string text = sheet.text();
  EXPECT_NE(text.find("\r\x1b[Kstep 100  loss 0.2500  accuracy 0.9750\n[===="), std::string::npos);
  EXPECT_TRUE(text.ends_with("ETA 0:00\n"));
}

TEST(ProgressBar, RedrawsRarelyButAlwaysTheLastStep) {
  Sheet sheet;
  ProgressBar bar(sheet.stream(), Show::always);
  for (std::int64_t step = 1; step <= 100; ++step) bar.on_progress({step, 100, 0, 0, 0, 0, 7200});
  const std::string text = sheet.text();
  EXPECT_LT(std::count(text.begin(), text.end(), '\r'), 50);
  EXPECT_NE(text.find("100/100"), std::string::npos);
  EXPECT_NE(text.find("ETA 2:00:00"), std::string::npos);
}

TEST(ProgressBar, WritesNothingToAFile) {
  Sheet sheet;
  ProgressBar bar(sheet.stream());
  bar.on_progress(half_way);
  bar.on_evaluation(1, {{{"loss", 1}}});
  bar.on_finish();
  EXPECT_EQ(sheet.text(), "");
}

}  // namespace
}  // namespace ferrite::train
