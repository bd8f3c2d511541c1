// The portable functions against those of the C library, in double; the vector loops against the plain ones,
// in bits.
#include "models/priors/portable_math.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "models/priors/team.hpp"

namespace ferrite::priors {
namespace {

/// Largest error relative to max(1, |exact|) over a grid.
template <class T, class F, class Exact>
double worst_error(T low, T high, F&& f, Exact&& exact) {
  double worst = 0;
  for (int i = 0; i <= 40000; ++i) {
    const T x = low + (high - low) * static_cast<T>(i) / 40000;
    const double e = exact(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(f(x)) - e) / std::max(1.0, std::fabs(e)));
  }
  return worst;
}

TEST(PortableMath, FloatFunctionsAreRightToAFewUlp) {
  EXPECT_LT(
      worst_error(
          -3.0f, 3.0f, [](float t) { return sin_turns(t); }, [](double t) { return std::sin(2 * M_PI * t); }),
      6e-7);
  EXPECT_LT(
      worst_error(
          -3.0f, 3.0f, [](float t) { return cos_turns(t); }, [](double t) { return std::cos(2 * M_PI * t); }),
      6e-7);
  EXPECT_LT(worst_error(
                -80.0f, 80.0f, [](float x) { return portable_exp(x); }, [](double x) { return std::exp(x); }),
            4e-7);
  EXPECT_LT(worst_error(
                1e-9f, 50.0f, [](float x) { return portable_log(x); }, [](double x) { return std::log(x); }),
            4e-7);
  EXPECT_LT(
      worst_error(
          -12.0f, 12.0f, [](float x) { return portable_tanh(x); }, [](double x) { return std::tanh(x); }),
      4e-7);
  EXPECT_LT(worst_error(
                -30.0f, 30.0f, [](float x) { return portable_softplus(x); },
                [](double x) { return std::log1p(std::exp(x)); }),
            4e-7);
  EXPECT_LT(worst_error(
                -40.0f, 40.0f, [](float x) { return portable_sigmoid(x); },
                [](double x) { return 1 / (1 + std::exp(-x)); }),
            4e-7);
  EXPECT_TRUE(std::isfinite(portable_exp(1e30f)));
}

TEST(PortableMath, AnglesInTurnsMayBeLargeAndThoseInRadiansLoseInProportion) {
  for (const float size : {1e3f, 1e6f, 8e6f}) {  // a quarter turn is below the last bit of the largest
    const auto turn = [](double t) { return 2 * M_PI * (t - std::rint(t)); };
    EXPECT_LT(
        worst_error(
            -size, size, [](float t) { return sin_turns(t); }, [&](double t) { return std::sin(turn(t)); }),
        6e-7);
    EXPECT_LT(
        worst_error(
            -size, size, [](float t) { return cos_turns(t); }, [&](double t) { return std::cos(turn(t)); }),
        6e-7);
  }
  for (const float size : {3.0f, 1e2f, 1e4f})
    EXPECT_LT(worst_error(
                  -size, size, [](float x) { return portable_sin(x); }, [](double x) { return std::sin(x); }),
              6e-7 + 1.2e-7 * static_cast<double>(size));
}

TEST(PortableMath, NoResultDependsOnTheSignOfANan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int kind = 0; kind < plain_activations; ++kind) {
    const float a = activate(static_cast<Activation>(kind), nan),
                b = activate(static_cast<Activation>(kind), -nan);
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << activation_names[kind];
  }
}

TEST(PortableMath, DoubleFunctionsAreRightToThirteenDigits) {
  EXPECT_LT(
      worst_error(
          -3.0, 3.0, [](double t) { return sin_turns(t); }, [](double t) { return std::sin(2 * M_PI * t); }),
      1e-13);
  EXPECT_LT(
      worst_error(
          -3.0, 3.0, [](double t) { return cos_turns(t); }, [](double t) { return std::cos(2 * M_PI * t); }),
      1e-13);
  for (const double y : {-3.3, 0.5, 2.7})
    EXPECT_LT(worst_error(
                  0.01, 100.0, [&](double x) { return portable_pow(x, y); },
                  [&](double x) { return std::pow(x, y); }),
              1e-13);
  EXPECT_LT(worst_error(
                -50.0, 50.0, [](double x) { return portable_exp(x); }, [](double x) { return std::exp(x); }),
            1e-13);
  EXPECT_LT(worst_error(
                1e-12, 1e6, [](double x) { return portable_log(x); }, [](double x) { return std::log(x); }),
            1e-13);
}

TEST(Team, SumsInTheOrderOfAWarp) {
  std::vector<float> x;
  for (int i = 0; i < 1003; ++i) x.push_back(std::sin(static_cast<float>(i)) * 1e3f);
  float lanes[32] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 32] += x[i];
  for (std::size_t width = 16; width > 0; width /= 2)
    for (std::size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  SerialTeam team;
  EXPECT_EQ(team.sum(1003, [&](int i) { return x[static_cast<std::size_t>(i)]; }), lanes[0]);
}

TEST(Team, BulkNumbersAreThoseOfTheStream) {
  const Stream stream = DatasetKey{9, 4, 1}.stream(Purpose::noise, 3);
  SerialTeam team;
  std::vector<float> normals(519), uniforms(519);
  team.normals(stream, 7, 519, normals.data());
  team.uniforms(stream, 7, 519, uniforms.data());
  for (std::size_t i = 0; i < normals.size(); ++i) {
    ASSERT_EQ(normals[i], stream.normal(28 + i));
    ASSERT_EQ(uniforms[i], stream.uniform(28 + i));
  }
}

TEST(Team, ProductsAreFusedMultiplyAddsInTheOrderOfK) {
  const int from = 13, to = 7, rows = 37;
  const Stream stream = DatasetKey{1, 2, 3}.stream(Purpose::weights);
  std::vector<float> weights(from * to), bias(to), in(from * rows), out(to * rows);
  SerialTeam team;
  team.normals(stream, 0, from * to, weights.data());
  team.normals(stream, 100, to, bias.data());
  team.normals(stream, 200, from * rows, in.data());
  team.product(weights.data(), bias.data(), in.data(), from, out.data(), to, rows);
  for (int u = 0; u < to; ++u) {
    for (int r = 0; r < rows; ++r) {
      float sum = bias[static_cast<std::size_t>(u)];
      for (int k = 0; k < from; ++k)
        sum = std::fma(weights[static_cast<std::size_t>(u * from + k)],
                       in[static_cast<std::size_t>(k * rows + r)], sum);
      ASSERT_EQ(out[static_cast<std::size_t>(u * rows + r)], sum);
    }
  }
}

TEST(Moments, AreRightForValuesWhoseSquaresOverflow) {
  SerialTeam team;
  std::vector<float> x(100);
  team.normals(DatasetKey{1, 2, 3}.stream(Purpose::noise), 0, 100, x.data());
  const Moments plain = moments(team, x.data(), 100);
  for (const float scale : {0x1p70f, 0x1p124f}) {  // sums overflow too at the second
    std::vector<float> large = x;
    for (float& v : large) v *= scale;
    const Moments m = moments(team, large.data(), 100);
    EXPECT_NEAR(static_cast<double>(m.mean / scale), static_cast<double>(plain.mean), 1e-6);
    EXPECT_NEAR(static_cast<double>(m.rstd * scale / plain.rstd), 1, 1e-4);
  }
}

TEST(Activations, KeepLargeValuesAndTurnColumnsThatAreNotFiniteIntoNan) {
  SerialTeam team;
  FourierSeries series;
  draw_fourier(team, DatasetKey{1, 2, 3}.stream(Purpose::fourier), 1.1f, series);
  for (int kind = 0; kind <= plain_activations; ++kind) {
    const ActivationPlan plan{static_cast<Activation>(kind), 1, 0.3f, 1.1f};
    std::vector<float> x(80);
    team.normals(DatasetKey{4, 4, 4}.stream(Purpose::noise), 0, 80, x.data());
    for (int r = 0; r < 40; ++r) x[static_cast<std::size_t>(r)] *= 1e25f;
    x[50] = HUGE_VALF;
    apply_activation(team, plan, series, x.data(), 2, 40);
    bool varies = false;
    for (std::size_t r = 0; r < 40; ++r) {
      varies = varies || x[r] != x[0];
      EXPECT_TRUE(std::isfinite(x[r])) << activation_names[kind];
      EXPECT_TRUE(std::isnan(x[40 + r])) << activation_names[kind];
    }
    EXPECT_TRUE(varies) << activation_names[kind];
  }
}

TEST(FourierSeries, IsTheSumOfItsSinesOnEveryPath) {
  SerialTeam team;
  FourierSeries series;
  draw_fourier(team, DatasetKey{1, 2, 3}.stream(Purpose::fourier), 1.1f, series);
  ASSERT_EQ(series.terms % 2, 0);
  ASSERT_GT(series.terms, 20);
  std::vector<float> x(53);
  team.normals(DatasetKey{4, 4, 4}.stream(Purpose::noise), 0, 53, x.data());
  std::vector<float> y = x;
  team.fourier(series, y.data(), 53);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i], fourier_value(series, x[i]));
    double exact = 0;
    for (int k = 0; k < series.terms; ++k) {
      const double angle = (k + static_cast<double>(series.offset)) * static_cast<double>(x[i]);
      exact += static_cast<double>(series.re[k]) * std::sin(angle) +
               static_cast<double>(series.im[k]) * std::cos(angle);
    }
    EXPECT_NEAR(static_cast<double>(y[i]), exact, 5e-4);
  }
}

}  // namespace
}  // namespace ferrite::priors
