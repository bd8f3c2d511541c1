// iota: shape rule, and how many numbers arange makes.
#include "ferrite/ops/iota.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferrite::op {

Metas Iota::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 0, 0);
  if (dtype == DType::bool_) throw DTypeError(fmt::format("[{}] dtype bool: needs a number type", name()));
  check_extents(name(), {count});
  return {Meta{{count}, dtype}};
}

std::int64_t arange_count(Scalar start, Scalar stop, Scalar step) {
  const double a = start.to_double(), b = stop.to_double(), s = step.to_double();
  if (s == 0 || !std::isfinite(a) || !std::isfinite(b) || !std::isfinite(s))
    throw ValueError(
        fmt::format("[arange] from {} to {} by {}: bounds must be finite and the step not 0", a, b, s));
  const double count = std::ceil((b - a) / s);
  if (count > 0x1p62)
    throw ValueError(fmt::format("[arange] from {} to {} by {}: too many elements", a, b, s));
  return static_cast<std::int64_t>(std::max(0.0, count));
}

}  // namespace ferrite::op
