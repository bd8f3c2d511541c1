// Ranges of values: the known bounds of an expression while it is made. A division, root or logarithm is
// written only where the range of its operand allows it, so programs are defined for all inputs by
// construction.
#pragma once

#include <algorithm>
#include <cmath>

namespace ferrite::irsynth {

struct Range {
  double low = 0, high = 0;

  /// The largest absolute value.
  double size() const { return std::max(std::abs(low), std::abs(high)); }
  bool above(double least) const { return low >= least; }
  /// All values are at least this far from zero.
  bool apart(double least) const { return low >= least || high <= -least; }
  bool within(double most) const { return size() <= most; }

  friend Range operator+(Range a, Range b) { return {a.low + b.low, a.high + b.high}; }
  friend Range operator-(Range a) { return {-a.high, -a.low}; }
  friend Range operator-(Range a, Range b) { return a + -b; }
  friend Range operator*(Range a, Range b) {
    const double p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
    return {std::min({p, q, r, s}), std::max({p, q, r, s})};
  }
  /// `b` is apart from zero.
  friend Range operator/(Range a, Range b) { return a * Range{1 / b.high, 1 / b.low}; }
};

/// Holds both.
inline Range join(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
inline Range absolute(Range a) { return {a.low > 0 ? a.low : a.high < 0 ? -a.high : 0.0, a.size()}; }
inline Range symmetric(double size) { return {-size, size}; }
/// Of a growing function.
template <class F>
Range mapped(Range a, F f) {
  return {f(a.low), f(a.high)};
}

}  // namespace ferrite::irsynth
