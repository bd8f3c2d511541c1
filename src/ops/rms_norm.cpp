// rms_norm and its gradient: shape rules and costs.
#include "ferrite/ops/rms_norm.hpp"

#include "ops/norm_rules.hpp"

namespace ferrite::op {

Metas RmsNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 2);
  check_eps(type_name, eps);
  check_rows(type_name, in[0]);
  check_parameter(type_name, "weight", in[1], in[0].shape.back());
  return {in[0], statistic_of(in[0], without_last(in[0].shape))};
}
Cost RmsNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 5); }
double RmsNorm::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

Metas RmsNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 4, 4);
  check_rows(type_name, in[1]);
  check_gradient(type_name, in[0], in[1].shape);
  check_parameter(type_name, "weight", in[2], in[1].shape.back());
  check_statistic(type_name, "rstd", in[3], statistic_of(in[1], without_last(in[1].shape)));
  return {in[1], in[2]};
}
Cost RmsNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 10); }
double RmsNormBackward::reduction_length(MetaSpan in) const {
  return LayerNormBackward{}.reduction_length(in);
}

}  // namespace ferrite::op
