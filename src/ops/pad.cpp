// pad: shape rule, and where the input lies in the result.
#include "ferrite/ops/pad.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/integers.hpp"

namespace ferrite::op {

Metas Pad::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  Meta result = in[0];
  const int rank = result.shape.rank();
  if (low.rank() != rank || high.rank() != rank || interior.rank() != rank)
    throw ShapeError(fmt::format("[pad] {} with low {}, high {}, interior {}: each list needs {} entries",
                                 ferrite::to_string(in[0].shape), ferrite::to_string(low),
                                 ferrite::to_string(high), ferrite::to_string(interior), rank));
  for (int i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0 || interior[i] < 0)
      throw ValueError(fmt::format("[pad] low {}, high {}, interior {}: must not be negative; slice to crop",
                                   ferrite::to_string(low), ferrite::to_string(high),
                                   ferrite::to_string(interior)));
    const std::int64_t n = result.shape[i];
    const std::int64_t inner = saturating_multiply_add(std::max<std::int64_t>(n - 1, 0), interior[i], n);
    result.shape[i] = saturating_multiply_add(1, saturating_multiply_add(1, inner, low[i]), high[i]);
  }
  check_extents(type_name, result.shape);
  return {result};
}

Layout Pad::inner(const Layout& padded, const Shape& shape) const {
  Layout result = padded;
  for (int i = 0; i < shape.rank(); ++i)
    result = result.slice(i, shape[i] > 0 ? low[i] : 0, shape[i], interior[i] + 1);
  return result;
}

}  // namespace ferrite::op
