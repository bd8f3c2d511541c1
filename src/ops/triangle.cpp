// triangle: shape rule.
#include "ferrite/ops/triangle.hpp"

#include <fmt/format.h>

namespace ferrite::op {

Metas Triangle::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  if (in[0].shape.rank() < 2)
    throw ShapeError(
        fmt::format("[{}] {}: needs at least two axes", name(), ferrite::to_string(in[0].shape)));
  return {in[0]};
}

}  // namespace ferrite::op
