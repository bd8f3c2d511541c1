// scatter_add: shape rule and cost.
#include "ferrite/ops/scatter_add.hpp"

#include "ops/index_rules.hpp"

namespace ferrite::op {

Metas ScatterAdd::infer(MetaSpan in) const {
  if (in.size() == 3 && in[0].dtype == DType::bool_)
    throw DTypeError("[scatter_add] x is bool: needs a number type");
  return infer_scatter(type_name, axis, in);
}

double ScatterAdd::reduction_length(MetaSpan in) const {
  return static_cast<double>(in[1].shape[normalize_axis(type_name, axis, in[1].shape.rank())]);
}

Cost ScatterAdd::cost(MetaSpan in, MetaSpan out) const { return put_cost(in, out[0]); }

}  // namespace ferrite::op
