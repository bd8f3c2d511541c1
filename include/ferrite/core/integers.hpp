// Arithmetic on counts, for host and device code alike.
#pragma once

#include <cstdint>

namespace ferrite {

/// How many b it takes to cover a; a >= 0, b >= 1.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// a * b + c for non-negative numbers, or the largest number if that overflows, so that no check is passed by
/// wrapping around.
constexpr std::int64_t saturating_multiply_add(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result) ? INT64_MAX
                                                                                             : result;
}
constexpr std::int64_t round_up(std::int64_t a, std::int64_t unit) { return divide_up(a, unit) * unit; }

}  // namespace ferrite
