// layer_norm and its gradient: shape rules and costs.
#include "ferrite/ops/layer_norm.hpp"

#include <algorithm>

#include "ops/norm_rules.hpp"

namespace ferrite::op {

Metas LayerNorm::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 3);
  check_eps(type_name, eps);
  check_rows(type_name, in[0]);
  check_parameter(type_name, "weight", in[1], in[0].shape.back());
  check_parameter(type_name, "bias", in[2], in[0].shape.back());
  const Meta row = statistic_of(in[0], without_last(in[0].shape));
  return {in[0], row, row};
}
Cost LayerNorm::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 8); }
double LayerNorm::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape.back()); }

Metas LayerNormBackward::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 5, 5);
  check_rows(type_name, in[1]);
  check_gradient(type_name, in[0], in[1].shape);
  check_parameter(type_name, "weight", in[2], in[1].shape.back());
  const Meta row = statistic_of(in[1], without_last(in[1].shape));
  check_statistic(type_name, "mean", in[3], row);
  check_statistic(type_name, "rstd", in[4], row);
  return {in[1], in[2], in[2]};
}
Cost LayerNormBackward::cost(MetaSpan in, MetaSpan out) const { return streaming(in, out, 14); }
double LayerNormBackward::reduction_length(MetaSpan in) const {
  const double channels = static_cast<double>(in[1].shape.back());
  return std::max(channels, static_cast<double>(in[1].shape.numel()) / std::max(channels, 1.0));
}

}  // namespace ferrite::op
