// unary and its gradient: names, shape rules, what they save.
#include "ferrite/ops/unary.hpp"

#include <fmt/format.h>

#include <iterator>

namespace ferrite::op {

std::string_view to_string(UnaryFn fn) {
  static constexpr std::string_view names[] = {
      "neg",      "abs",   "sign",       "square",      "relu",  "floor",     "ceil",     "round",
      "sqrt",     "rsqrt", "reciprocal", "exp",         "expm1", "log",       "log1p",    "sin",
      "cos",      "tan",   "tanh",       "sigmoid",     "erf",   "gelu_tanh", "gelu_erf", "silu",
      "softplus", "elu",   "leaky_relu", "logical_not", "isnan", "isfinite"};
  static_assert(std::size(names) == unary_fn_count);
  return names[static_cast<int>(fn)];
}

Metas Unary::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  const DType dtype = in[0].dtype;
  if (fn >= UnaryFn::logical_not) return {Meta{in[0].shape, DType::bool_}};
  if (fn <= UnaryFn::round) {
    if (dtype == DType::bool_)
      throw DTypeError(fmt::format("[{}] input is bool: needs a number; cast it or use logical_not", name()));
    return {in[0]};
  }
  return {Meta{in[0].shape, float_result(dtype)}};
}

Cost Unary::cost(MetaSpan in, MetaSpan out) const {
  // Elementary functions are counted as about ten operations; they are memory-bound all the same.
  const double n = static_cast<double>(out[0].shape.numel());
  const bool cheap = fn <= UnaryFn::round || fn >= UnaryFn::leaky_relu;
  return {n * (cheap ? 1 : 10), static_cast<double>(in[0].bytes() + out[0].bytes())};
}

bool Unary::differentiates_from_output() const {
  switch (fn) {
    case UnaryFn::sqrt:
    case UnaryFn::rsqrt:
    case UnaryFn::reciprocal:
    case UnaryFn::exp:
    case UnaryFn::expm1:
    case UnaryFn::tan:
    case UnaryFn::tanh:
    case UnaryFn::sigmoid:
    case UnaryFn::relu:
      return true;
    default:
      return false;
  }
}

Saves Unary::saves() const {
  if (fn == UnaryFn::neg || fn == UnaryFn::sign || (fn >= UnaryFn::floor && fn <= UnaryFn::round)) return {};
  return differentiates_from_output() ? Saves{.outputs = {0}} : Saves{.inputs = {0}};
}

std::string_view UnaryBackward::name() const { return type_name; }

Metas UnaryBackward::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 2, 2);
  const bool is_step =
      fn == UnaryFn::sign || (fn >= UnaryFn::floor && fn <= UnaryFn::round) || fn >= UnaryFn::logical_not;
  if (is_step || fn == UnaryFn::neg)  // neg is its own gradient, without anything saved
    throw ValueError(
        fmt::format("[{}] fn {}: has no derivative that depends on its input", name(), to_string(fn)));
  detail::check_floating(name(), "saved tensor", in[0].dtype);
  detail::check_shape(name(), "gradient", in[1].shape, in[0].shape);
  detail::check_floating(name(), "gradient", in[1].dtype);
  return {Meta{in[0].shape, promote(in[0].dtype, in[1].dtype)}};
}

}  // namespace ferrite::op
