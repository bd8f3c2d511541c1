// Scales of numbers: quantiles to a normal distribution, tails to their logarithm.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/models/pfn/ensemble.hpp"

namespace ferrite::pfn {

namespace {

constexpr double straight = 3;  // up to so many deviations, tails are not compressed

/// Of sorted values, with a straight line between two.
double quantile(const std::vector<double>& values, double level) {
  const double place = level * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double above = values[std::min(below + 1, values.size() - 1)];
  return values[below] + (above - values[below]) * (place - static_cast<double>(below));
}

/// A knot for each different value, its level being the middle of its ranks; at most about a thousand knots.
void fit_knots(const std::vector<double>& sorted, FeatureScale& scale) {
  constexpr std::size_t most = 1000;
  const auto count = static_cast<double>(sorted.size());
  for (std::size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    for (end = begin; end < sorted.size() && sorted[end] == sorted[begin]; ++end) continue;
    scale.values.push_back(sorted[begin]);
    scale.scores.push_back(normal_quantile(static_cast<double>(begin + end) / 2 / count));
  }
  const std::size_t knots = scale.values.size();
  if (knots <= most) return;
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t from = i * (knots - 1) / (most - 1);  // not before i, so that nothing is overwritten
    scale.values[i] = scale.values[from];
    scale.scores[i] = scale.scores[from];
  }
  scale.values.resize(most);
  scale.scores.resize(most);
}

/// How many of sorted values, of which there is at least one, are not above v. It does not branch on values,
/// as nobody could foretell them.
std::size_t count_up_to(const std::vector<double>& sorted, double v) {
  const double* from = sorted.data();
  std::size_t left = sorted.size();
  while (left > 1) {
    const std::size_t half = left / 2;
    from += static_cast<std::size_t>(from[half - 1] <= v) * half;
    left -= half;
  }
  return static_cast<std::size_t>(from - sorted.data()) + static_cast<std::size_t>(*from <= v);
}

}  // namespace

double normal_quantile(double level) {
  if (!(level > 0 && level < 1)) return std::numeric_limits<double>::quiet_NaN();
  // A rational approximation (P. J. Acklam) is right to nine digits; a step of Halley's method triples them.
  const double tail = std::min(level, 1 - level);
  double x = 0;
  if (tail > 0.02425) {
    const double q = level - 0.5, r = q * q;
    x = (((((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r + 138.3577518672690) *
              r -
          30.66479806614716) *
             r +
         2.506628277459239) *
        q /
        (((((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r + 66.80131188771972) *
              r -
          13.28068155288572) *
             r +
         1);
  } else {
    const double q = std::sqrt(-2 * std::log(tail));
    x = (((((-0.007784894002430293 * q - 0.3223964580411365) * q - 2.400758277161838) * q -
           2.549732539343734) *
              q +
          4.374664141464968) *
             q +
         2.938163982698783) /
        ((((0.007784695709041462 * q + 0.3224671290700398) * q + 2.445134137142996) * q + 3.754408661907416) *
             q +
         1);
    if (level > 0.5) x = -x;
  }
  // The smaller tail of both is exact where 1 - p would not be.
  const double error = x < 0 ? 0.5 * std::erfc(-x / std::sqrt(2.0)) - level
                             : (1 - level) - 0.5 * std::erfc(x / std::sqrt(2.0));
  const double newton = error * std::sqrt(2 * M_PI) * std::exp(x * x / 2);
  return x - newton / (1 + x * newton / 2);
}

FeatureScale FeatureScale::fit(NumberScale kind, const std::vector<double>& sorted) {
  FeatureScale scale;
  if (sorted.empty() || kind == NumberScale::none) return scale;
  scale.kind = kind;
  if (kind == NumberScale::normal) {
    fit_knots(sorted, scale);
    return scale;
  }
  scale.centre = quantile(sorted, 0.5);
  scale.deviation = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.349;  // of a normal one
  if (scale.deviation > 0) return scale;
  double squares = 0;  // most values are equal
  for (const double v : sorted) squares += (v - scale.centre) * (v - scale.centre);
  scale.deviation = std::sqrt(squares / static_cast<double>(sorted.size()));
  if (!(scale.deviation > 0)) scale.deviation = 1;
  return scale;
}

float FeatureScale::operator()(float value) const {
  if (kind == NumberScale::none || std::isnan(value)) return value;
  const auto v = static_cast<double>(value);
  if (kind == NumberScale::tails) {
    const double z = (v - centre) / deviation, size = std::abs(z);
    return static_cast<float>(size <= straight ? z
                                               : std::copysign(straight + std::log1p(size - straight), z));
  }
  const std::size_t i = count_up_to(values, v);
  if (i == 0) return static_cast<float>(scores.front());
  if (i == values.size()) return static_cast<float>(scores.back());
  const double share = (v - values[i - 1]) / (values[i] - values[i - 1]);
  return static_cast<float>(scores[i - 1] + share * (scores[i] - scores[i - 1]));
}

}  // namespace ferrite::pfn
