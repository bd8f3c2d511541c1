// fused_linear: shape rule, cost.
#include "ferrite/ops/fused_linear.hpp"

#include "ops/cost.hpp"
#include "ops/norm_rules.hpp"

namespace ferrite::op {

std::string_view to_string(RowNorm norm) {
  static constexpr std::string_view names[] = {"none", "layer", "rms"};
  return names[static_cast<int>(norm)];
}

Metas FusedLinear::infer(MetaSpan in) const {
  const std::size_t needed = residual_input() + (residual ? 1 : 0);
  detail::check_arity(type_name, in.size(), needed, needed);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "weight", in[1].shape, 2);
  detail::check_floating(type_name, "x", in[0].dtype);
  if (quantized) {
    detail::check_dtype(type_name, "weight", in[1].dtype, DType::i8);
    detail::check_floating(type_name, "scale", in[2].dtype);
    detail::check_shape(type_name, "scale", in[2].shape, {in[1].shape[0]});
  } else {
    detail::check_floating(type_name, "weight", in[1].dtype);
  }
  const std::int64_t rows = in[0].shape[0], inner = in[0].shape[1], columns = in[1].shape[0];
  detail::check_shape(type_name, "weight", in[1].shape, {columns, inner});
  if (norm != RowNorm::none) {
    check_eps(type_name, eps);
    check_rows(type_name, in[0]);
  }
  const auto check = [&](std::size_t i, std::string_view what, const Shape& shape) {
    detail::check_shape(type_name, what, in[i].shape, shape);
    detail::check_dtype(type_name, what, in[i].dtype, in[0].dtype);
  };
  if (norm != RowNorm::none) check(norm_input(), "norm weight", {inner});
  if (norm == RowNorm::layer) check(norm_input() + 1, "norm bias", {inner});
  if (bias) check(bias_input(), "bias", {columns});
  if (residual) check(residual_input(), "residual", {rows, columns});
  return {{{rows, columns}, in[0].dtype}};
}

Cost FusedLinear::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(2 * static_cast<double>(in[0].shape[0]) * static_cast<double>(in[1].shape.numel()), in, out);
}

double FusedLinear::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape[1]); }

}  // namespace ferrite::op
