// dropout: shape rule.
#include "ferrite/ops/dropout.hpp"

namespace ferrite::op {

Metas Dropout::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_attribute(type_name, "p", p, p >= 0 && p <= 1, "must lie in [0, 1]");
  return {in[0]};
}

}  // namespace ferrite::op
