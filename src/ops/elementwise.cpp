// Shape and dtype rules of the elementwise ops: copy, unary, binary, where, dropout, pointwise losses.
#include <fmt/format.h>

#include <cmath>

#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/unary.hpp"
#include "ferrite/ops/where.hpp"

namespace ferrite::op {

Metas Copy::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  return {Meta{in[0].shape, dtype}};
}

std::string_view to_string(UnaryFn fn) {
  constexpr std::string_view names[] = {
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

std::string_view to_string(BinaryFn fn) {
  constexpr std::string_view names[] = {
      "add", "sub", "mul", "div", "pow", "maximum", "minimum",     "remainder",  "atan2",
      "eq",  "ne",  "lt",  "le",  "gt",  "ge",      "logical_and", "logical_or", "logical_xor"};
  static_assert(std::size(names) == binary_fn_count);
  return names[static_cast<int>(fn)];
}

DType Binary::operand_dtype(MetaSpan in) const {
  if (is_logical(fn)) return DType::bool_;
  // Comparing u8 with -1 must not wrap the -1: integers are compared as i64.
  if (is_comparison(fn) && side != ScalarSide::none && !is_floating(in[0].dtype) &&
      scalar.kind() != Scalar::Kind::real)
    return DType::i64;
  const DType common =
      side == ScalarSide::none ? promote(in[0].dtype, in[1].dtype) : promote(in[0].dtype, scalar);
  return fn == BinaryFn::div || fn == BinaryFn::atan2 ? float_result(common) : common;
}

Metas Binary::infer(MetaSpan in) const {
  const std::size_t arity = side == ScalarSide::none ? 2 : 1;
  detail::check_arity(name(), in.size(), arity, arity);
  const Shape shape = arity == 2 ? broadcast(name(), in[0].shape, in[1].shape) : in[0].shape;
  if (is_comparison(fn) || is_logical(fn)) return {Meta{shape, DType::bool_}};
  const DType dtype = operand_dtype(in);
  const bool extremum = fn == BinaryFn::maximum || fn == BinaryFn::minimum;
  if (dtype == DType::bool_ && !extremum)
    throw DTypeError(
        fmt::format("[{}] both operands are bool: cast to a number, or use logical_and, logical_or, "
                    "logical_xor",
                    name()));
  return {Meta{shape, dtype}};
}

Saves Binary::saves() const {
  switch (fn) {
    case BinaryFn::add:
    case BinaryFn::sub:
      return {};
    case BinaryFn::mul:
      return side == ScalarSide::none ? Saves{.inputs = {0, 1}} : Saves{};
    case BinaryFn::div:
    case BinaryFn::remainder:
      return side == ScalarSide::right ? Saves{} : Saves{.inputs = {0, 1}};
    default:
      return is_comparison(fn) || is_logical(fn) ? Saves{} : Saves{.inputs = {0, 1}};
  }
}

Metas Where::infer(MetaSpan in) const {
  const std::size_t arity = side == ScalarSide::none ? 3 : 2;
  detail::check_arity(type_name, in.size(), arity, arity);
  if (in[0].dtype != DType::bool_)
    throw DTypeError(fmt::format("[where] condition is {}: needs bool; compare it first (x != 0)",
                                 to_string(in[0].dtype)));
  Shape shape = broadcast(type_name, in[0].shape, in[1].shape);
  DType dtype = in[1].dtype;
  if (arity == 3) {
    shape = broadcast(type_name, shape, in[2].shape);
    dtype = promote(dtype, in[2].dtype);
  } else {
    dtype = promote(dtype, scalar);
  }
  return {Meta{shape, dtype}};
}

Metas Dropout::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  detail::check_floating(type_name, "x", in[0].dtype);
  detail::check_attribute(type_name, "p", p, p >= 0 && p <= 1, "must lie in [0, 1]");
  return {in[0]};
}

std::string_view to_string(LossFn fn) {
  constexpr std::string_view names[] = {"mse", "l1", "huber", "bce_with_logits"};
  return names[static_cast<int>(fn)];
}

namespace {
void check_loss(std::string_view op, LossFn fn, double delta, MetaSpan in) {
  // Broadcasting here hides bugs: [N, 1] against [N] would give [N, N].
  if (!(in[0].shape == in[1].shape))
    throw ShapeError(fmt::format("[{}] prediction {} and target {}: shapes must be equal", op,
                                 ferrite::to_string(in[0].shape), ferrite::to_string(in[1].shape)));
  detail::check_floating(op, "prediction", in[0].dtype);
  detail::check_floating(op, "target", in[1].dtype);
  detail::check_attribute(op, "delta", delta, fn != LossFn::huber || delta > 0, "must be positive");
}
}  // namespace

Metas PointwiseLoss::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 2, 2);
  check_loss(name(), fn, delta, in);
  return {Meta{in[0].shape, promote(in[0].dtype, in[1].dtype)}};
}

std::string_view PointwiseLossBackward::name() const { return type_name; }

Metas PointwiseLossBackward::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 3, 3);
  check_loss(name(), fn, delta, in);
  detail::check_shape(name(), "gradient", in[2].shape, in[0].shape);
  detail::check_floating(name(), "gradient", in[2].dtype);
  return {in[0]};
}

}  // namespace ferrite::op
