// scatter: shape rule and cost.
#include "ferrite/ops/scatter.hpp"

#include "ops/index_rules.hpp"

namespace ferrite::op {

Metas Scatter::infer(MetaSpan in) const { return infer_scatter(type_name, axis, in); }

Cost Scatter::cost(MetaSpan in, MetaSpan out) const { return put_cost(in, out[0]); }

}  // namespace ferrite::op
