// gather: shape rule and cost.
#include "ferrite/ops/gather.hpp"

#include "ops/index_rules.hpp"

namespace ferrite::op {

Metas Gather::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  check_index(type_name, axis, in[0], in[1]);
  return {Meta{in[1].shape, in[0].dtype}};
}

Cost Gather::cost(MetaSpan in, MetaSpan out) const { return pick_cost(in[1], out[0]); }

}  // namespace ferrite::op
