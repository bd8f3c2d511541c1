// fill: shape rule.
#include "ferrite/ops/fill.hpp"

namespace ferrite::op {

Metas Fill::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 0, 0);
  check_extents(name(), shape);
  return {Meta{shape, dtype}};
}

}  // namespace ferrite::op
