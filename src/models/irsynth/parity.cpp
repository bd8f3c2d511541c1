// The distance between two runs of a program.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

double roundings_between(std::span<const kernel::Value> a, std::span<const kernel::Value> b) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!a[k].type.is_array()) continue;
    const kernel::ScalarType s = a[k].type.scalar;
    if (!kernel::is_float(s)) {
      for (std::size_t e = 0; e < a[k].numbers.size(); ++e)
        if (a[k].numbers[e].integer != b[k].numbers[e].integer) return infinite;
      continue;
    }
    double scale = 1, apart = 0;
    for (std::size_t e = 0; e < a[k].numbers.size(); ++e) {
      const double x = a[k].numbers[e].real, y = b[k].numbers[e].real;
      if (!std::isfinite(x) || !std::isfinite(y)) return infinite;
      scale = std::max(scale, std::abs(x));
      apart = std::max(apart, std::abs(x - y));
    }
    const double rounding = s == kernel::ScalarType::f64 ? 0x1p-52 : 0x1p-23;
    worst = std::max(worst, apart / (scale * rounding));
  }
  return worst;
}

}  // namespace ferrite::irsynth
