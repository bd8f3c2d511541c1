// binary: names, shape and dtype rules, what it saves.
#include "ferrite/ops/binary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

namespace ferrite::op {

std::string_view to_string(BinaryFn fn) {
  static constexpr std::string_view names[] = {
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

Scalar Binary::operand(DType dtype) const {
  const bool extremum = fn == BinaryFn::maximum || fn == BinaryFn::minimum;
  if (!extremum || !is_integer(dtype) || scalar.kind() != Scalar::Kind::integer) return scalar;
  return visit_any_dtype(dtype, [&]<class T>() -> Scalar {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using Limits = std::numeric_limits<T>;
      return std::clamp(scalar.to_int(), static_cast<std::int64_t>(Limits::min()),
                        static_cast<std::int64_t>(Limits::max()));
    }
    return scalar;
  });
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

}  // namespace ferrite::op
