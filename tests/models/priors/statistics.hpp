// What the distribution tests need: Kolmogorov-Smirnov and chi-square statistics, and a few distribution
// functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace ferrite::testing {

/// sqrt(n) sup |F_n - F|. Beyond 1.95 once in a thousand.
template <class Cdf>
double kolmogorov_smirnov(std::vector<double> sample, Cdf&& cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double worst = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double f = cdf(sample[i]), k = static_cast<double>(i);
    worst = std::max({worst, f - k / n, (k + 1) / n - f});
  }
  return worst * std::sqrt(n);
}
inline constexpr double ks_limit = 1.95;

/// The same for two samples of one law; where values are equal it is smaller.
inline double kolmogorov_smirnov(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  double worst = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] == x) ++i;
    while (j < b.size() && b[j] == x) ++j;
    worst = std::max(worst, std::fabs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  return worst * std::sqrt(n * m / (n + m));
}

/// (chi-square - freedom) / sqrt(2 freedom): about a standard normal, larger than 4 only if the law is
/// another.
inline double chi_square_excess(const std::vector<double>& counts, const std::vector<double>& probabilities) {
  double total = 0, chi = 0;
  for (const double c : counts) total += c;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * probabilities[i];
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

/// Integrates a density from `low` to x by Simpson's rule.
template <class Density>
double integral(Density&& f, double low, double x, int steps = 300) {
  const double h = (x - low) / steps;
  double sum = f(low) + f(x);
  for (int i = 1; i < steps; ++i) sum += f(low + i * h) * (i % 2 ? 4 : 2);
  return sum * h / 3;
}

}  // namespace ferrite::testing
