// quantized_linear: shape rule, cost.
#include "ferrite/ops/quantized_linear.hpp"

#include <fmt/format.h>

#include "ops/cost.hpp"

namespace ferrite::op {

Metas QuantizedLinear::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 3, 4);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_dtype(type_name, "weight", in[1].dtype, DType::i8);
  detail::check_floating(type_name, "scale", in[2].dtype);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "weight", in[1].shape, 2);
  const std::int64_t inner = in[0].shape[1], columns = in[1].shape[0];
  if (inner != in[1].shape[1])
    throw ShapeError(fmt::format("[quantized_linear] x {} and weight {}: inner dimensions {} and {} differ",
                                 ferrite::to_string(in[0].shape), ferrite::to_string(in[1].shape), inner,
                                 in[1].shape[1]));
  detail::check_shape(type_name, "scale", in[2].shape, {columns});
  if (in.size() > 3) {
    detail::check_floating(type_name, "bias", in[3].dtype);
    detail::check_shape(type_name, "bias", in[3].shape, {columns});
  }
  return {Meta{{in[0].shape[0], columns}, in[0].dtype}};
}

Cost QuantizedLinear::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(2 * static_cast<double>(out[0].shape.numel()) * static_cast<double>(in[0].shape[1]), in,
                 out);
}

double QuantizedLinear::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape[1]); }

}  // namespace ferrite::op
