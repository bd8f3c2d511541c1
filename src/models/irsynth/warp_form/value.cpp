// How Warp prints constants and types, and what it knows about its functions: which have an adjoint, and
// which adjoints need the result.
#include "models/irsynth/warp_form/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferrite::irsynth::warp {

namespace {

/// A float as Python's str() writes it.
std::string python_float(double x) {
  if (std::isnan(x)) return "NAN";
  if (std::isinf(x)) return x > 0 ? "INFINITY" : "-INFINITY";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

Constant boolean(bool value) {
  return {Constant::Kind::boolean, value, value ? 1.0 : 0.0, value ? "true" : "false"};
}
Constant integer(std::int64_t value) {
  return {Constant::Kind::integer, value, static_cast<double>(value), fmt::format("{}", value)};
}
Constant real(double value) { return {Constant::Kind::real, 0, value, python_float(value)}; }

Constant typed(ScalarType type, const Constant& value) {
  Constant made = value;
  if (type == ScalarType::bool_) return boolean(value.truth());
  if (is_float(type)) return value;  // an int stays without a point
  if (value.kind == Constant::Kind::real) made = integer(static_cast<std::int64_t>(value.real));
  if (type == ScalarType::u64)
    made.text = fmt::format("{}ull", static_cast<std::uint64_t>(made.integer));
  else
    made.text = fmt::format("{}{}", made.integer,
                            type == ScalarType::i64   ? "ll"
                            : type == ScalarType::u32 ? "u"
                                                      : "");
  return made;
}

std::string scalar_text(ScalarType scalar) {
  static constexpr std::string_view names[scalar_type_count] = {
      "bool",      "wp::int8",   "wp::uint8",   "wp::int16",    "wp::uint16",  "wp::int32",  "wp::uint32",
      "wp::int64", "wp::uint64", "wp::float16", "wp::bfloat16", "wp::float32", "wp::float64"};
  return std::string(names[static_cast<int>(scalar)]);
}

namespace {

std::string element_text(Type t, const Module& module) {
  const std::string scalar = scalar_text(t.scalar);
  switch (t.kind) {
    case Type::Kind::vector:
      return fmt::format("wp::vec_t<{}, {}>", t.rows, scalar);
    case Type::Kind::matrix:
      return fmt::format("wp::mat_t<{}, {}, {}>", t.rows, t.columns, scalar);
    case Type::Kind::quaternion:
      return fmt::format("wp::quat_t<{}>", scalar);
    case Type::Kind::structure:
      return module.structs[t.structure].name;
    default:
      return scalar;
  }
}

}  // namespace

std::string type_text(const ValueType& type, const Module& module) {
  const std::string star = type.reference ? "*" : "";
  switch (type.form) {
    case ValueType::Form::range:
      return "wp::range_t" + star;
    case ValueType::Form::shape:
      return "wp::shape_t" + star;
    case ValueType::Form::tuple: {
      std::string text = "wp::tuple_t<";
      for (int i = 0; i < type.size; ++i) text += i == 0 ? "wp::int32" : ", wp::int32";
      return text + ">" + star;
    }
    case ValueType::Form::fixed_array:
      return fmt::format("wp::fixedarray_t<{}, {}>{}", type.size, element_text(type.type.element(), module),
                         star);
    case ValueType::Form::value:
      break;
  }
  if (type.python_float) return "wp::quat_t<float>";
  const std::string element = element_text(type.type.element(), module);
  return (type.is_array() ? fmt::format("wp::array_t<{}>", element) : element) + star;
}

Callee library(const std::string& name, bool differentiable) {
  return {"wp::" + name, "wp::adj_" + name, differentiable};
}

Callee library(Builtin builtin, const std::vector<ValueType>& types) {
  using B = Builtin;
  static constexpr Builtin without_adjoint[] = {
      B::invert,        B::not_,      B::floordiv,    B::bit_and,    B::bit_or,     B::bit_xor,
      B::lshift,        B::rshift,    B::sign,        B::step,       B::nonzero,    B::floor,
      B::ceil,          B::trunc,     B::round,       B::rint,       B::frac,       B::isfinite,
      B::isnan,         B::isinf,     B::bit_count,   B::argmin,     B::argmax,     B::identity,
      B::quat_identity, B::len,       B::atomic_exch, B::atomic_cas, B::atomic_and, B::atomic_or,
      B::atomic_xor,    B::expect_eq, B::expect_near};
  static constexpr Builtin with_output[] = {B::pow,    B::sqrt,      B::cbrt,   B::exp,     B::tanh,
                                            B::length, B::normalize, B::cw_div, B::inverse, B::quat_slerp};
  const auto in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), builtin) != std::end(list);
  };
  const Type first = types.empty() ? Type::none() : types[0].type;
  Callee callee = library(std::string(builtin == B::not_ ? "unot" : info(builtin).name));
  callee.differentiable = !in(without_adjoint) && builtin < B::rand_init;
  if (builtin == B::mod) callee.differentiable = first.is_scalar();
  callee.needs_output = in(with_output) && !(builtin == B::normalize && first.is_quaternion());
  if (builtin == B::div) callee.needs_output = first.is_scalar() && types[1].type.is_scalar();
  callee.replayed = info(builtin).effect != Effect::writes_array;
  return callee;
}

}  // namespace ferrite::irsynth::warp
