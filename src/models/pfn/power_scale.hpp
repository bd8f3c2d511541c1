// A power of two for numbers whose squares would overflow or vanish.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace ferrite::pfn::detail {

/// The power of two that brings the largest of the numbers near 1; products with it are exact, so that
/// results do not depend on it as long as nothing overflows or vanishes.
inline double power_scale(std::span<const double> a, std::span<const double> b = {}) {
  double largest = 0;
  for (const auto numbers : {a, b})
    for (const double v : numbers) largest = std::max(largest, std::abs(v));
  if (!(largest > 0 && std::isfinite(largest))) return 1;
  return std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
}

}  // namespace ferrite::pfn::detail
