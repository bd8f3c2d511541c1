// Arithmetic on counts, for host and device code alike.
#pragma once

#include <cstdint>

namespace ferrite {

/// How many b it takes to cover a; both at least 0 and 1.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t unit) { return divide_up(a, unit) * unit; }

}  // namespace ferrite
