#include "backend_cpu/simd/simd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace ferrite {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float exp_of(float x) { return simd::exp(simd::Vec<float>{} + x)[0]; }

TEST(Simd, ExpIsWithinAFewUlp) {
  for (float x = 88; x > -87.3f; x -= 0.00713f) {
    const double want = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    ASSERT_LE(std::abs(exp_of(x) - want), 1.5 * ulp) << x;
  }
}

TEST(Simd, ExpOfSpecialValues) {
  EXPECT_EQ(exp_of(0), 1);
  EXPECT_EQ(exp_of(-0.0f), 1);
  EXPECT_EQ(exp_of(-infinity), 0);
  EXPECT_EQ(exp_of(-1e30f), 0);
  EXPECT_EQ(exp_of(-88.1f), 0);
  EXPECT_TRUE(std::isnan(exp_of(NAN)));
}

float exp2_of(float x) { return simd::exp2(simd::Vec<float>{} + x)[0]; }

TEST(Simd, Exp2IsWithinAFewUlp) {
  for (float x = 127; x > -126; x -= 0.00713f) {
    const double want = std::exp2(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    ASSERT_LE(std::abs(exp2_of(x) - want), 1.5 * ulp) << x;
  }
}

TEST(Simd, Exp2OfSpecialValues) {
  EXPECT_EQ(exp2_of(0), 1);
  EXPECT_EQ(exp2_of(-0.0f), 1);
  EXPECT_EQ(exp2_of(127), 0x1p127f);
  EXPECT_EQ(exp2_of(-126), 0x1p-126f);
  EXPECT_EQ(exp2_of(-infinity), 0);
  EXPECT_EQ(exp2_of(-1e30f), 0);
  EXPECT_EQ(exp2_of(-126.6f), 0);
  EXPECT_TRUE(std::isnan(exp2_of(NAN)));
}

TEST(Simd, ReductionsSeeEveryElementOfRowsOfEveryLength) {
  for (std::int64_t n = 0; n < 300; ++n) {
    std::vector<float> x(static_cast<std::size_t>(n)), y(static_cast<std::size_t>(n) + 1, -1.0f);
    std::iota(x.begin(), x.end(), 1.0f);
    const float total = static_cast<float>(n * (n + 1) / 2);
    const float* row = x.data();
    EXPECT_EQ(simd::sum<float>(n, [&](auto at) { return at(row); }), total);
    EXPECT_EQ(simd::max<float>(n, [&](auto at) { return -at(row); }), n > 0 ? -1 : -infinity);
    EXPECT_EQ(simd::map_sum(y.data(), n, [&](auto at) { return at(row) + 1; }),
              total + static_cast<float>(n));
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[static_cast<std::size_t>(i)], static_cast<float>(i + 2));
    EXPECT_EQ(y.back(), -1) << "written beyond the end of " << n;
  }
}

template <class W>
void expect_replaced_at_every_place() {
  constexpr std::int64_t begin = 40, width = simd::lanes<W>;
  simd::Vec<W> v;
  for (std::int64_t j = 0; j < width; ++j) v[j] = static_cast<W>(j + 1);
  for (std::int64_t place = begin - 2; place < begin + width + 2; ++place) {
    const auto whole = simd::Whole<W>{begin}.with(v, place, W{-7});
    const auto part = simd::Part<W>{begin, width - 1}.with(v, place, W{-7});
    for (std::int64_t j = 0; j < width; ++j) {
      EXPECT_EQ(whole[j], begin + j == place ? W{-7} : v[j]) << place << " " << j;
      EXPECT_EQ(part[j], whole[j]) << place << " " << j;
    }
  }
  EXPECT_EQ(simd::across(v), static_cast<W>(width * (width + 1) / 2));
}
TEST(Simd, OneElementIsReplacedAtEveryPlaceAndLanesAreAdded) {
  expect_replaced_at_every_place<float>();
  expect_replaced_at_every_place<double>();
}

TEST(Simd, SumsOfMillionsStayAccurate) {
  const std::vector<float> x(3000000, 0.1f);
  const float* row = x.data();
  const double want = 3e6 * static_cast<double>(0.1f);
  EXPECT_NEAR(simd::sum<float>(3000000, [&](auto at) { return at(row); }), want, 2e-6 * want);
}

TEST(Simd, LogsumexpOfInfinitiesAndNan) {
  const auto of = [](std::vector<double> x) {
    const double* row = x.data();
    return simd::logsumexp<double>(static_cast<std::int64_t>(x.size()), [&](auto at) { return at(row); });
  };
  EXPECT_NEAR(of({1, 2, 3}), 3.4076059644443803, 1e-15);
  EXPECT_EQ(of({-INFINITY, -INFINITY}), -INFINITY);
  EXPECT_EQ(of({0, INFINITY, 1}), INFINITY);
  EXPECT_TRUE(std::isnan(of({0, INFINITY, NAN})));
  EXPECT_TRUE(std::isnan(of({NAN, 1})));
}

}  // namespace
}  // namespace ferrite
