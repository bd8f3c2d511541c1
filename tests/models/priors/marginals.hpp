// Draws of many datasets against their laws: by a distribution function, or by numbers that the standard
// library's generators draw.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "ferrite/models/priors/config.hpp"
#include "models/priors/statistics.hpp"

namespace ferrite::testing {

/// What the laws say, by another generator.
struct Expected {
  std::mt19937_64 random{1};

  double uniform(double low, double high) { return std::uniform_real_distribution<>(low, high)(random); }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  double normal(double mean, double std) { return std::normal_distribution<>(mean, std)(random); }
  double cauchy() { return std::cauchy_distribution<>(0, 1)(random); }
  double gamma(double shape) { return std::gamma_distribution<>(shape, 1)(random); }
  double operator()(const priors::TruncatedNormalLaw& law) {
    const double mu = log_uniform(law.min, law.max), sigma = mu * log_uniform(0.01, 1);
    for (;;)
      if (const double x = normal(mu, sigma); x >= 0) return law.lower + x;
  }
  double operator()(const priors::TruncatedNormalLaw& law, int least, int most) {
    return std::clamp(std::rint((*this)(law)), double(least), double(most));
  }
  double operator()(const priors::GammaLaw& law) {
    const double shape = log_uniform(1, law.max_alpha);
    return law.lower + gamma(shape) * uniform(0, law.max_scale) / shape;
  }
  double operator()(const priors::BetaLaw& law) {
    const double x = gamma(uniform(law.min, law.max)), y = gamma(uniform(law.min, law.max));
    return law.scale * x / (x + y);
  }
  template <class F>
  std::vector<double> sample(F&& f) {
    std::vector<double> values;
    for (int i = 0; i < 200'000; ++i) values.push_back(f());
    return values;
  }
};

/// Columns of numbers, one row per dataset.
struct Sample {
  std::map<std::string, std::vector<double>> values;
  void add(const std::string& name, double value) { values[name].push_back(value); }

  template <class F>
  void expect_as(const std::string& name, F&& drawn) {
    Expected expected;
    EXPECT_LT(kolmogorov_smirnov(values.at(name), expected.sample([&] { return drawn(expected); })), ks_limit)
        << name;
  }
  template <class Cdf>
  void expect_cdf(const std::string& name, Cdf&& cdf) {
    EXPECT_LT(kolmogorov_smirnov(values.at(name), cdf), ks_limit) << name;
  }
  void expect_uniform(const std::string& name, double low, double high) {
    expect_cdf(name, [=](double x) { return std::clamp((x - low) / (high - low), 0.0, 1.0); });
  }
  void expect_log_uniform(const std::string& name, double low, double high) {
    expect_cdf(name, [=](double x) { return std::log(x / low) / std::log(high / low); });
  }
  /// Integers from `first` on with these probabilities.
  void expect_counts(const std::string& name, int first, const std::vector<double>& probabilities) {
    std::vector<double> counts(probabilities.size());
    for (const double v : values.at(name)) counts.at(static_cast<std::size_t>(v - first)) += 1;
    EXPECT_LT(chi_square_excess(counts, probabilities), 4) << name;
  }
  void expect_equal_counts(const std::string& name, int first, int last) {
    const auto count = static_cast<std::size_t>(last - first + 1);
    expect_counts(name, first, std::vector<double>(count, 1.0 / static_cast<double>(count)));
  }
};

}  // namespace ferrite::testing
