// The minimum of a smooth convex function, by L-BFGS (Liu and Nocedal, 1989).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::pfn::detail {

/// The value at a point; writes the gradient.
using SmoothFunction = std::function<double(std::span<const double> at, std::span<double> gradient)>;

struct Minimum {
  std::vector<double> at;
  double value = 0;
  std::int64_t steps = 0;
  bool found = false;  // no part of the gradient is larger than the tolerance
};

/// Exported for its tests.
FERRITE_API Minimum minimise(const SmoothFunction& function, std::vector<double> start,
                             std::int64_t most_steps, double tolerance);

}  // namespace ferrite::pfn::detail
