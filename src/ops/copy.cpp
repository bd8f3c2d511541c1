// copy: shape rule.
#include "ferrite/ops/copy.hpp"

namespace ferrite::op {

Metas Copy::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  return {Meta{in[0].shape, dtype}};
}

}  // namespace ferrite::op
