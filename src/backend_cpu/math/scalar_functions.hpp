// Arithmetic of single elements whose bits must be the same on every machine. ferrite/ops/formulas.hpp
// defines the elementwise functions.
#pragma once

#include "ferrite/ops/formulas.hpp"

namespace ferrite::scalar {

/// a * b + c with both operations rounded, even if a compiler would fuse them.
inline double multiply_then_add(double a, double b, double c) {
  const volatile double product = a * b;
  return product + c;
}
inline std::int64_t multiply_then_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  const formulas::Standard<std::int64_t> m;
  return m.add(m.mul(a, b), c);
}

/// `u` in [0, 1) stretched to [low, high): low + u * (high - low) in double, rounded once to T. A value that
/// rounds up to `high` becomes `low`, so that the interval stays half open.
template <class T>
T uniform_between(double low, double high, double u) {
  const T value = convert<T>(multiply_then_add(u, high - low, low));
  return convert<double>(value) < high ? value : convert<T>(low);
}

}  // namespace ferrite::scalar
