// The formulas themselves: derivatives against differences, f32 against f64, and what happens at the edges of
// the numbers. That backends run them is tested where the backends are.
#include "ferrite/ops/formulas.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "backend_cpu/math/element_math.hpp"
#include "ferrite/ops/unary.hpp"

namespace ferrite {
namespace {

using formulas::Standard;
using op::BinaryFn;
using op::UnaryFn;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr UnaryFn fn_at(int i) { return static_cast<UnaryFn>(i); }
constexpr int real_count = static_cast<int>(UnaryFn::logical_not);  // functions without bool results

double f(UnaryFn fn, double x, double alpha = 1) { return formulas::unary(Standard<double>{}, fn, x, alpha); }
/// What backward gets of x.
double saved(UnaryFn fn, double x, double alpha = 1) {
  return op::Unary{fn, alpha}.differentiates_from_output() ? f(fn, x, alpha) : x;
}
double slope(UnaryFn fn, double x, double alpha = 1, double dy = 1) {
  return formulas::backward(Standard<double>{}, fn, saved(fn, x, alpha), dy, alpha);
}

TEST(Formulas, DerivativesAreCentralDifferences) {
  const double h = 1e-6, alpha = 0.7;
  for (int i = 0; i < real_count; ++i) {
    for (const double x : {0.3, 1.7, 4.1, -0.6, -2.3}) {
      if (std::isnan(f(fn_at(i), x, alpha))) continue;
      const double difference = (f(fn_at(i), x + h, alpha) - f(fn_at(i), x - h, alpha)) / (2 * h);
      const double tolerance = 1e-8 * std::max(1.0, std::abs(difference));
      EXPECT_NEAR(slope(fn_at(i), x, alpha), difference, tolerance) << op::to_string(fn_at(i)) << " at " << x;
    }
  }
}

TEST(Formulas, SlopesEndWhereTheFunctionIsStraight) {
  for (const UnaryFn fn : {UnaryFn::gelu_tanh, UnaryFn::gelu_erf, UnaryFn::silu}) {
    for (const double x : {900.0, 1e200, inf}) {
      EXPECT_EQ(slope(fn, x), 1) << op::to_string(fn);
      EXPECT_EQ(slope(fn, -x), 0) << op::to_string(fn);
    }
    EXPECT_TRUE(std::isnan(slope(fn, nan)));
  }
  // The bounds are beyond the smallest numbers.
  EXPECT_NEAR(slope(UnaryFn::silu, -740) / (-739 * std::exp(-740.0)), 1, 1e-2);
  EXPECT_NE(slope(UnaryFn::gelu_tanh, -21.4), 0);
  EXPECT_NE(slope(UnaryFn::gelu_erf, -38.4), 0);
}

TEST(Formulas, WhereTheDerivativeChoosesSoDoesTheResult) {
  EXPECT_EQ(slope(UnaryFn::relu, -1, 1, inf), 0);
  EXPECT_EQ(slope(UnaryFn::relu, 1, 1, inf), inf);
  EXPECT_EQ(slope(UnaryFn::elu, 1000, 0, 2), 2);
  EXPECT_EQ(slope(UnaryFn::leaky_relu, 1, 0, inf), inf);
  // dy comes first: the slope alone is out of range.
  EXPECT_NEAR(slope(UnaryFn::reciprocal, 1e-160, 1, 1e-200) / -1e120, 1, 1e-12);
  EXPECT_NEAR(slope(UnaryFn::rsqrt, 1e-210, 1, 1e-200) / -5e114, 1, 1e-12);
}

/// f32 against f64, in units of the last place of the result, or of `scale` where that is larger: sums whose
/// parts cancel.
double ulps(float actual, double expected, double scale = 0) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : inf;
  if (static_cast<float>(expected) == actual) return 0;
  const double magnitude = std::max({std::abs(expected), scale, 0x1p-126});
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

template <class M>
class FormulasOfF32 : public ::testing::Test {};
using FloatMaths = ::testing::Types<Standard<float>, cpu::FastMath>;
TYPED_TEST_SUITE(FormulasOfF32, FloatMaths);

/// A rounding of the argument costs gelu_tanh up to |u| ulp and gelu_erf (Standard) x^2 ulp: 30 at -5.
double bound_of(UnaryFn fn) {
  if (fn <= UnaryFn::sqrt || fn == UnaryFn::reciprocal || fn == UnaryFn::leaky_relu) return 0.5;
  return fn == UnaryFn::gelu_tanh || fn == UnaryFn::gelu_erf ? 30 : 3;
}

TYPED_TEST(FormulasOfF32, FunctionsAreThoseOfF64) {
  const TypeParam m;
  for (int i = 0; i < op::unary_fn_count; ++i) {
    for (int k = -500; k <= 500; ++k) {
      const float x = static_cast<float>(k) * 0.01f;
      const double expected = f(fn_at(i), static_cast<double>(x), 0.5);
      ASSERT_LE(ulps(formulas::unary(m, fn_at(i), x, 0.5f), expected), bound_of(fn_at(i)))
          << op::to_string(fn_at(i)) << " of " << x;
    }
  }
}

/// |x u'| of the gates x sigmoid(u). In 1 - sigmoid(u) near 1 two roundings are left, of the sum and of the
/// quotient: 1.5 * 2^-24, which this multiplies.
double gate_reach(UnaryFn fn, double x) {
  if (fn == UnaryFn::silu) return std::abs(x);
  return fn == UnaryFn::gelu_tanh ? std::abs(x) * (formulas::gelu_linear + 3 * formulas::gelu_cubic * x * x)
                                  : 0;
}

TYPED_TEST(FormulasOfF32, DerivativesAreThoseOfF64) {
  const TypeParam m;
  for (int i = 0; i < real_count; ++i) {
    for (int k = -500; k <= 500; ++k) {
      const double x = static_cast<double>(k) * 0.01;
      const auto s = static_cast<float>(saved(fn_at(i), x, 0.5));
      const double expected =
          formulas::backward(Standard<double>{}, fn_at(i), static_cast<double>(s), 0.75, 0.5);
      ASSERT_LE(ulps(formulas::backward(m, fn_at(i), s, 0.75f, 0.5f), expected, 0.5),
                4 + 1.5 * 0.75 * gate_reach(fn_at(i), x))
          << op::to_string(fn_at(i)) << " at " << x;
    }
  }
}

TYPED_TEST(FormulasOfF32, NothingButTheResultEndsTheRange) {
  const TypeParam m;
  const auto infinity = std::numeric_limits<float>::infinity();
  for (const UnaryFn fn : {UnaryFn::gelu_tanh, UnaryFn::gelu_erf, UnaryFn::silu}) {
    EXPECT_EQ(formulas::backward(m, fn, infinity, 1.0f, 1.0f), 1);
    EXPECT_EQ(formulas::backward(m, fn, -infinity, 1.0f, 1.0f), 0);
    EXPECT_TRUE(std::isnan(formulas::backward(m, fn, static_cast<float>(nan), 1.0f, 1.0f)));
  }
  for (const float x : {-88.0f, -90.0f})
    EXPECT_NEAR(formulas::unary(m, UnaryFn::silu, x, 1.0f) / f(UnaryFn::silu, static_cast<double>(x)), 1,
                1e-4);
}

TEST(Formulas, BinaryFunctionsTreatNaNAndSignsAsPythonDoes) {
  const auto g = [](BinaryFn fn, double a, double b) {
    return formulas::binary(Standard<double>{}, fn, a, b);
  };
  for (const BinaryFn fn : {BinaryFn::maximum, BinaryFn::minimum, BinaryFn::remainder}) {
    EXPECT_TRUE(std::isnan(g(fn, nan, 1)));
    EXPECT_TRUE(std::isnan(g(fn, 1, nan)));
  }
  EXPECT_EQ(g(BinaryFn::remainder, -7, 3), 2);
  EXPECT_EQ(g(BinaryFn::remainder, 7, -3), -2);
  EXPECT_EQ(g(BinaryFn::remainder, -1, inf), inf);
  EXPECT_TRUE(std::signbit(g(BinaryFn::remainder, 6, -3)));
  EXPECT_TRUE(std::isnan(g(BinaryFn::remainder, 1, 0)));
  EXPECT_EQ(g(BinaryFn::logical_and, nan, 1), 1);
  EXPECT_EQ(g(BinaryFn::div, 1, 4), 0.25);
  EXPECT_EQ(g(BinaryFn::atan2, 0, -1), std::atan2(0.0, -1.0));
}

TEST(Formulas, IntegersWrapAround) {
  using I = std::int64_t;
  const Standard<I> m;
  const I least = INT64_MIN, most = INT64_MAX;
  const auto g = [&](BinaryFn fn, I a, I b) { return formulas::binary(m, fn, a, b); };
  EXPECT_EQ(g(BinaryFn::add, most, 1), least);
  EXPECT_EQ(g(BinaryFn::sub, least, 1), most);
  EXPECT_EQ(g(BinaryFn::mul, least, -1), least);
  EXPECT_EQ(g(BinaryFn::remainder, least, -1), 0);
  EXPECT_EQ(g(BinaryFn::remainder, 5, 0), 0);
  EXPECT_EQ(g(BinaryFn::remainder, -7, 3), 2);
  EXPECT_EQ(g(BinaryFn::pow, -1, -3), -1);
  EXPECT_EQ(g(BinaryFn::pow, 2, -1), 0);
  EXPECT_EQ(g(BinaryFn::pow, 3, 41), INT64_C(-420491770248316829));
  EXPECT_EQ(formulas::unary(m, UnaryFn::abs, least, I{1}), least);
  EXPECT_EQ(formulas::unary(m, UnaryFn::sign, least, I{1}), -1);
  EXPECT_EQ(formulas::unary(m, UnaryFn::floor, I{7}, I{1}), 7);
  EXPECT_EQ(formulas::unary(m, UnaryFn::isfinite, most, I{1}), 1);
}

}  // namespace
}  // namespace ferrite
