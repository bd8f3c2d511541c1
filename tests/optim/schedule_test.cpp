// Schedules as functions of the step.
#include "ferrite/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/io_test.hpp"

namespace ferrite::optim {
namespace {

using testing::expect_error;

TEST(Schedule, ConstantNeverChanges) {
  EXPECT_EQ(Schedule::constant(0.1).at(0), 0.1);
  EXPECT_EQ(Schedule::constant(0.1).at(1'000'000'000), 0.1);
}

TEST(Schedule, WarmUpRisesInEqualStepsToTheFullRate) {
  const Schedule s = Schedule::linear_warmup(0.4, 4);
  EXPECT_DOUBLE_EQ(s.at(0), 0.1);
  EXPECT_DOUBLE_EQ(s.at(1), 0.2);
  EXPECT_DOUBLE_EQ(s.at(3), 0.4);
  EXPECT_DOUBLE_EQ(s.at(4), 0.4);
  EXPECT_DOUBLE_EQ(Schedule::linear_warmup(0.4, 0).at(0), 0.4);
}

TEST(Schedule, CosineFallsFromTheRateToTheFloor) {
  const Schedule s = Schedule::cosine(1, 100, 0.2);
  EXPECT_DOUBLE_EQ(s.at(0), 1);
  EXPECT_DOUBLE_EQ(s.at(50), 0.6);
  EXPECT_NEAR(s.at(25), 0.2 + 0.4 * (1 + std::sqrt(0.5)), 1e-15);
  EXPECT_DOUBLE_EQ(s.at(100), 0.2);
  EXPECT_DOUBLE_EQ(s.at(5000), 0.2);
}

TEST(Schedule, StepMultipliesAtEachBoundary) {
  const Schedule s = Schedule::step(1, 10, 0.5);
  EXPECT_EQ(s.at(9), 1);
  EXPECT_EQ(s.at(10), 0.5);
  EXPECT_EQ(s.at(29), 0.25);
}

TEST(Schedule, ACosineAfterAWarmUpStillEndsAtItsTotal) {
  const Schedule s = Schedule::cosine(1, 110).with_warmup(10);
  EXPECT_DOUBLE_EQ(s.at(0), 0.1);
  EXPECT_DOUBLE_EQ(s.at(9), 1);
  EXPECT_DOUBLE_EQ(s.at(10), 1);
  EXPECT_NEAR(s.at(60), 0.5, 1e-15);
  EXPECT_NEAR(s.at(110), 0, 1e-15);
  EXPECT_EQ(Schedule::step(1, 10, 0.5).with_warmup(5).at(15), 0.5);
}

TEST(Schedule, AnyFunctionOfTheStepIsASchedule) {
  const Schedule s = Schedule::custom(
      0.1, [](std::int64_t step) { return step < 3 ? 1.0 : 0.5; }, "halved at step 3");
  EXPECT_DOUBLE_EQ(s.at(2), 0.1);
  EXPECT_DOUBLE_EQ(s.at(3), 0.05);
  EXPECT_EQ(s.describe(), "0.1 times halved at step 3");
  EXPECT_DOUBLE_EQ(s.with_warmup(2).at(0), 0.05);
  EXPECT_DOUBLE_EQ(s.with_warmup(2).at(4), 0.1);  // its third step
  EXPECT_DOUBLE_EQ(s.with_warmup(2).at(5), 0.05);
  const Schedule bad = Schedule::custom(
      1, [](std::int64_t step) { return step < 1 ? 1.0 : NAN; }, "bad");
  expect_error<ValueError>([&] { bad.at(1); }, {"[schedule] bad gives nan at step 1"});
  expect_error<ValueError>([] { Schedule::custom(1, nullptr, "x"); }, {"no function"});
  expect_error<ValueError>(
      [] {
        Schedule::custom(
            1, [](std::int64_t) { return 1.0; }, "");
      },
      {"no description"});
}

TEST(Schedule, DescribesItself) {
  EXPECT_EQ(Schedule::cosine(0.001, 1000).with_warmup(100).describe(),
            "cosine from 0.001 to 0 over 1000 steps after 100 of warm-up");
  EXPECT_NE(Schedule::step(1, 10, 0.5).describe(), Schedule::step(1, 10, 0.25).describe());
}

TEST(Schedule, ValuesOutsideTheirDomainAreRefused) {
  expect_error<ValueError>([] { Schedule::constant(-1); }, {"[schedule] learning rate -1"});
  expect_error<ValueError>([] { Schedule::constant(std::numeric_limits<double>::infinity()); }, {"finite"});
  expect_error<ValueError>([] { Schedule::cosine(1, 0); }, {"[schedule] total 0"});
  expect_error<ValueError>([] { Schedule::step(1, 0); }, {"[schedule] every 0"});
  expect_error<ValueError>([] { Schedule::constant(1).with_warmup(-1); }, {"warm-up -1"});
  expect_error<ValueError>([] { Schedule::constant(1).at(-1); }, {"step -1"});
}

}  // namespace
}  // namespace ferrite::optim
