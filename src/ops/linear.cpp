// linear: activations, shape rule, cost.
#include "ferrite/ops/linear.hpp"

#include <fmt/format.h>

#include "ops/cost.hpp"

namespace ferrite::op {

std::string_view to_string(Activation activation) {
  static constexpr std::string_view names[] = {"none", "relu", "gelu", "silu", "tanh", "sigmoid"};
  return names[static_cast<int>(activation)];
}

Unary activation_op(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return {UnaryFn::relu};
    case Activation::gelu:
      return {UnaryFn::gelu_tanh};
    case Activation::silu:
      return {UnaryFn::silu};
    case Activation::tanh:
      return {UnaryFn::tanh};
    case Activation::sigmoid:
      return {UnaryFn::sigmoid};
    default:
      throw ValueError("[linear] activation none has no function");
  }
}

bool Linear::keeps_pre_activation() const {
  return activation != Activation::none && !activation_op(activation).differentiates_from_output();
}

std::size_t Linear::residual_input(MetaSpan in) {
  if (in.size() == 4) return 3;
  return in.size() == 3 && in[2].shape.rank() == 2 ? 2 : no_input;
}

std::size_t Linear::bias_input(MetaSpan in) {
  return in.size() > 2 && residual_input(in) != 2 ? 2 : no_input;
}

Saves Linear::saves() const {
  if (activation == Activation::none) return {.inputs = {0, 1}};
  return {.inputs = {0, 1}, .outputs = {keeps_pre_activation() ? 1u : 0u}};
}

Metas Linear::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 2, 4);
  detail::check_rank(type_name, "x", in[0].shape, 2);
  detail::check_rank(type_name, "weight", in[1].shape, 2);
  if (in[0].shape[1] != in[1].shape[1])
    throw ShapeError(fmt::format("[linear] x {} and weight {}: inner dimensions {} and {} differ",
                                 ferrite::to_string(in[0].shape), ferrite::to_string(in[1].shape),
                                 in[0].shape[1], in[1].shape[1]));
  const Shape result{in[0].shape[0], in[1].shape[0]};
  const std::size_t bias = bias_input(in), residual = residual_input(in);
  if (bias != no_input) detail::check_shape(type_name, "bias", in[bias].shape, {result[1]});
  if (residual != no_input) detail::check_shape(type_name, "residual", in[residual].shape, result);
  if (residual != no_input && activation != Activation::none)
    throw ValueError(
        fmt::format("[linear] a residual after {}: needs activation none", to_string(activation)));
  DType dtype = in[0].dtype;
  for (const Meta& m : in) dtype = promote(dtype, m.dtype);
  detail::check_floating(type_name, "result", dtype);
  const Meta y{result, dtype};
  return keeps_pre_activation() ? Metas{y, y} : Metas{y};
}

Cost Linear::cost(MetaSpan in, MetaSpan out) const {
  return cost_of(2 * static_cast<double>(in[0].shape[0]) * static_cast<double>(in[0].shape[1]) *
                     static_cast<double>(in[1].shape[0]),
                 in, out);
}

double Linear::reduction_length(MetaSpan in) const { return static_cast<double>(in[0].shape[1]); }

}  // namespace ferrite::op
