#include "models/pfn/minimise.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

namespace ferrite::pfn::detail {

namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A step and the change of the gradient along it.
struct Pair {
  Vector step, change;
  double product;
};

/// Minus the gradient, times an inverse of the curvature that the last steps have shown.
Vector direction_of(const Vector& gradient, const std::deque<Pair>& pairs) {
  Vector d(gradient.size());
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = -gradient[i];
  Vector alphas;
  for (auto pair = pairs.rbegin(); pair != pairs.rend(); ++pair) {
    alphas.push_back(dot(pair->step, d) / pair->product);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= alphas.back() * pair->change[i];
  }
  if (!pairs.empty()) {
    const double scale = pairs.back().product / dot(pairs.back().change, pairs.back().change);
    for (double& v : d) v *= scale;
  }
  for (const Pair& pair : pairs) {
    const double correction = alphas.back() - dot(pair.change, d) / pair.product;
    alphas.pop_back();
    for (std::size_t i = 0; i < d.size(); ++i) d[i] += correction * pair.step[i];
  }
  return d;
}

double largest(const Vector& v) {
  double out = 0;
  for (const double x : v) out = std::max(out, std::abs(x));
  return out;
}

}  // namespace

Minimum minimise(const SmoothFunction& function, std::vector<double> start, std::int64_t most_steps,
                 double tolerance) {
  constexpr std::size_t memory = 20;
  constexpr double enough = 1e-4;  // of the decrease that the slope promises
  constexpr double rounding = 1e-15;
  Minimum result{std::move(start), 0, 0, false};
  Vector gradient(result.at.size());
  result.value = function(result.at, gradient);
  std::deque<Pair> pairs;
  for (; result.steps < most_steps && !(result.found = largest(gradient) <= tolerance); ++result.steps) {
    const Vector direction = direction_of(gradient, pairs);
    const double slope = dot(gradient, direction);
    double length = pairs.empty() ? std::min(1.0, 1 / largest(gradient)) : 1;
    Vector next(result.at.size()), next_gradient(next.size());
    double value = 0;
    for (;; length /= 2) {
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = result.at[i] + length * direction[i];
      value = function(next, next_gradient);
      if (value <= result.value + enough * length * slope + rounding * std::abs(result.value)) break;
      if (length < 1e-12) return result;  // rounding hides any further decrease
    }
    Pair pair{Vector(next.size()), Vector(next.size()), 0};
    for (std::size_t i = 0; i < next.size(); ++i) {
      pair.step[i] = next[i] - result.at[i];
      pair.change[i] = next_gradient[i] - gradient[i];
    }
    pair.product = dot(pair.step, pair.change);
    if (pair.product > 0) pairs.push_back(std::move(pair));
    if (pairs.size() > memory) pairs.pop_front();
    result.at = std::move(next);
    gradient = std::move(next_gradient);
    result.value = value;
  }
  return result;
}

}  // namespace ferrite::pfn::detail
