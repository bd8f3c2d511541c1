// Columns that break tokenizers, as matrices on any backend.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "ferrite/stacks.hpp"

namespace ferrite::testing {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Ties, a constant, NaN in between, only NaN, infinities, denormals, a heavy
/// value, a heavy tail.
inline std::vector<double> nasty(std::int64_t rows, std::uint64_t seed) {
  std::vector<double> values;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double u = uniform_at<double>({seed, 1}, static_cast<std::uint64_t>(r));
    const double v = uniform_at<double>({seed, 2}, static_cast<std::uint64_t>(r));
    const double row[] = {u - 0.5,
                          std::floor(4 * u),
                          7.5,
                          v < 0.3 ? nan : u,
                          nan,
                          v < 0.1   ? -infinity
                          : v > 0.9 ? infinity
                                    : u,
                          std::ldexp(std::floor(u * 20) - 10, -149),
                          v < 0.6   ? 0.0
                          : v < 0.7 ? -0.0
                                    : u,
                          std::exp(40 * u - 20)};
    values.insert(values.end(), std::begin(row), std::end(row));
  }
  return values;
}
inline constexpr std::int64_t nasty_columns = 9;

template <class B>
Tensor<B> matrix(B& b, const std::vector<double>& values, std::int64_t columns, DType dtype) {
  return cast(from_vector(b, values, {static_cast<std::int64_t>(values.size()) / columns, columns}), dtype);
}

}  // namespace ferrite::testing
