// Every law of the hyper-parameters against its distribution function.
#include "models/priors/laws.hpp"

#include <gtest/gtest.h>

#include "models/priors/activations.hpp"
#include "models/priors/causes.hpp"
#include "models/priors/graph.hpp"
#include "models/priors/statistics.hpp"
#include "models/priors/team.hpp"
#include "models/priors/workspace.hpp"

namespace ferrite::priors {
namespace {

using ferrite::testing::chi_square_excess;
using ferrite::testing::integral;
using ferrite::testing::kolmogorov_smirnov;
using ferrite::testing::ks_limit;
using ferrite::testing::normal_cdf;

constexpr int draws_per_test = 20000;

/// One value per dataset: f(draws of dataset i).
template <class F>
std::vector<double> sample(F&& f) {
  std::vector<double> values;
  for (int i = 0; i < draws_per_test; ++i) {
    Draws draws(DatasetKey{11, static_cast<std::uint64_t>(i), 0}.stream(Purpose::structure));
    values.push_back(f(draws));
  }
  return values;
}
double clamp01(double x) { return std::clamp(x, 0.0, 1.0); }

TEST(Draws, AreUniformLogUniformNormalExponentialAndCauchy) {
  EXPECT_LT(kolmogorov_smirnov(sample([](Draws& d) { return d.uniform(); }), clamp01), ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([](Draws& d) { return d.log_uniform(0.7, 3); }),
                               [](double x) { return std::log(x / 0.7) / std::log(3 / 0.7); }),
            ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([](Draws& d) { return d.normal(); }), normal_cdf), ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([](Draws& d) { return d.exponential(2); }),
                               [](double x) { return 1 - std::exp(-x / 2); }),
            ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([](Draws& d) { return d.cauchy(); }),
                               [](double x) { return 0.5 + std::atan(x) / M_PI; }),
            ks_limit);
}

TEST(Draws, GammaAndBetaFollowTheirDensitiesForSmallAndLargeShapes) {
  for (const double shape : {0.4, 1.0, 3.7}) {
    // Substituting x = t^4 removes the pole at 0.
    const auto density = [&](double t) {
      const double x = t * t * t * t;
      return t == 0 ? 0 : 4 * t * t * t * std::exp((shape - 1) * std::log(x) - x - std::lgamma(shape));
    };
    EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) { return std::pow(d.gamma(shape), 0.25); }),
                                 [&](double t) { return integral(density, 0, t); }),
              ks_limit)
        << shape;
  }
  const double a = 2.5, b = 1.5;
  const auto beta = [&](double x) {
    return x <= 0 || x >= 1 ? 0
                            : std::exp((a - 1) * std::log(x) + (b - 1) * std::log1p(-x) + std::lgamma(a + b) -
                                       std::lgamma(a) - std::lgamma(b));
  };
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) { return d.beta(a, b); }),
                               [&](double x) { return integral(beta, 0, x); }),
            ks_limit);
}

TEST(Draws, IntegersWeightsAndPermutationsAreAsLikelyAsTheyShouldBe) {
  std::vector<double> integers(7), weighted(4), places(5), chosen(9);
  const double weights[] = {1, 0, 5, 2};
  for (int i = 0; i < draws_per_test; ++i) {
    Draws draws(DatasetKey{3, static_cast<std::uint64_t>(i), 0}.stream(Purpose::structure));
    ++integers[static_cast<std::size_t>(draws.integer(-3, 3) + 3)];
    ++weighted[static_cast<std::size_t>(draws.weighted(weights, 4))];
    int order[5], some[3];
    draws.permutation(5, order);
    ++places[static_cast<std::size_t>(std::find(order, order + 5, 4) - order)];
    draws.distinct(9, 3, some);
    ASSERT_TRUE(some[0] != some[1] && some[1] != some[2] && some[0] != some[2]);
    ++chosen[static_cast<std::size_t>(some[1])];
  }
  EXPECT_LT(chi_square_excess(integers, std::vector<double>(7, 1.0 / 7)), 4);
  EXPECT_EQ(weighted[1], 0);
  EXPECT_LT(chi_square_excess({weighted[0], weighted[2], weighted[3]}, {0.125, 0.625, 0.25}), 4);
  EXPECT_LT(chi_square_excess(places, std::vector<double>(5, 0.2)), 4);
  EXPECT_LT(chi_square_excess(chosen, std::vector<double>(9, 1.0 / 9)), 4);
}

TEST(TruncatedNormalLaw, DrawsMuAndSigmaLogUniformlyAndThenATruncatedNormal) {
  const TruncatedNormalLaw law{5, 130, 4};
  const auto upper = [&](Draws& d) { return upper_draw(law, d); };
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) { return upper(d).mu; }),
                               [](double x) { return std::log(x / 5) / std::log(26.0); }),
            ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) {
                                 const TruncatedNormal u = upper(d);
                                 return u.sigma / u.mu;
                               }),
                               [](double x) { return 1 + std::log(x) / std::log(100.0); }),
            ks_limit);
  const TruncatedNormal wide{2, 1.8, 4};
  const double below = normal_cdf(-2 / 1.8);
  EXPECT_LT(kolmogorov_smirnov(
                sample([&](Draws& d) { return wide.value(d); }),
                [&](double x) { return clamp01((normal_cdf((x - 6) / 1.8) - below) / (1 - below)); }),
            ks_limit);
}

TEST(TruncatedNormalLaw, FitsTheWorkspaceAtItsLargestDraw) {
  Config config;
  config.mlp_scm.hidden = {5, 20, 4};
  const double largest = 4 + 20 * (1 + portable_normal(0, 0));
  EXPECT_GE(workspace_width(config), largest);
}

TEST(GammaLaw, DrawsShapeAndMeanAndThenAGamma) {
  const GammaLaw law{3, 100, 4};
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) { return upper_draw(law, d).shape; }),
                               [](double x) { return std::log(x) / std::log(3.0); }),
            ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) {
                                 const Gamma g = upper_draw(law, d);
                                 return g.shape * g.scale;
                               }),
                               [](double x) { return x / 100; }),
            ks_limit);
  double mean = 0;
  for (const double v : sample([](Draws& d) { return Gamma{2, 3.5, 4}.value(d); }))
    mean += v / draws_per_test;
  EXPECT_NEAR(mean, 4 + 2 * 3.5, 0.15);
}

TEST(BetaLaw, DrawsBothShapesUniformly) {
  const BetaLaw law{0.9, 0.1, 5};
  const auto uniform = [](double x) { return (x - 0.1) / 4.9; };
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) { return upper_draw(law, d).a; }), uniform), ks_limit);
  EXPECT_LT(kolmogorov_smirnov(sample([&](Draws& d) { return upper_draw(law, d).b; }), uniform), ks_limit);
  for (const double v : sample([&](Draws& d) { return upper_draw(law, d).value(d); })) {
    ASSERT_GE(v, 0);
    ASSERT_LE(v, 0.9);
  }
}

TEST(Choices, HaveAFixedFirstLogitAndUniformOthers) {
  EXPECT_LT(kolmogorov_smirnov(sample([](Draws& d) {
                                 double weights[3];
                                 choice_weights(d, -3, 5, weights, 3);
                                 EXPECT_DOUBLE_EQ(weights[0], std::exp(1.0));
                                 return std::log(weights[2]);
                               }),
                               [](double x) { return clamp01((x + 3) / 8); }),
            ks_limit);
  // P(first of two) is the mean of 1 / (1 + e^(u - 1)) over u in (-3, 5).
  const double first = integral([](double u) { return 1 / (1 + std::exp(u - 1)); }, -3, 5) / 8;
  double share = 0;
  for (const double v : sample([](Draws& d) { return group_flag(d) ? 1.0 : 0.0; }))
    share += v / draws_per_test;
  EXPECT_NEAR(share, first, 4 * std::sqrt(0.25 / draws_per_test));
}

TEST(Activations, PlainAndFourierEntriesShareAsInTheList) {
  std::vector<double> weights(activation_entries, 1.0), counts(plain_activations + 1);
  std::vector<double> scale, decay;
  for (int i = 0; i < draws_per_test; ++i) {
    Draws draws(DatasetKey{5, static_cast<std::uint64_t>(i), 0}.stream(Purpose::structure));
    const ActivationPlan plan = draw_activation(draws, weights.data());
    ++counts[static_cast<std::size_t>(plan.kind)];
    scale.push_back(std::log(static_cast<double>(plan.scale)) / 2);
    decay.push_back(static_cast<double>(plan.decay));
  }
  std::vector<double> expected(plain_activations + 1, 1.0 / first_any);
  expected.back() = static_cast<double>(fourier_entries) / first_any;
  EXPECT_LT(chi_square_excess(counts, expected), 4);
  EXPECT_LT(kolmogorov_smirnov(scale, normal_cdf), ks_limit);
  EXPECT_LT(kolmogorov_smirnov(decay, [](double x) { return std::log(x / 0.7) / std::log(3 / 0.7); }),
            ks_limit);
}

TEST(Graph, KeepsAnyOfMoreParentsThanFit) {
  const auto plan = std::make_unique<GraphPlan>();
  std::vector<double> thirds(3);
  for (std::uint64_t i = 0; i < 200; ++i) {
    draw_graph(GraphConfig{}, DatasetKey{7, i, 0}, 1, 60, *plan);
    for (int n = 31; n < plan->nodes; n += 30) {  // 30 or 60 candidates
      const GraphNode& node = plan->node[n];
      for (int p = 0; node.parents == max_parents && p < max_parents; ++p) {
        ASSERT_LT(node.parent[p], n);
        for (int q = 0; q < p; ++q) ASSERT_NE(node.parent[p], node.parent[q]);
        ++thirds[static_cast<std::size_t>(3 * node.parent[p] / n)];
      }
    }
  }
  const double total = thirds[0] + thirds[1] + thirds[2];
  ASSERT_GT(total, 500);
  for (const double count : thirds) EXPECT_NEAR(count / total, 1.0 / 3, 0.08);
}

TEST(Causes, ZipfBoundsAreItsDistributionFunction) {
  for (const double exponent : {2.0, 2.7, 4.0}) {
    double zeta = 0;
    for (int k = 1000000; k >= 1; --k) zeta += std::pow(k, -exponent);
    if (exponent == 2.0) zeta = M_PI * M_PI / 6;
    float bounds[max_cause_levels];
    draw_zipf_bounds(exponent, bounds);
    double sum = 0;
    for (int k = 1; k < zipf_levels; ++k) {
      sum += std::pow(k, -exponent) / zeta;
      EXPECT_NEAR(static_cast<double>(bounds[k - 1]), sum, 1e-5) << exponent;
    }
  }
}

}  // namespace
}  // namespace ferrite::priors
