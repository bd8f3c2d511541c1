// Types, literals and conversions in C++.
#include <fmt/format.h>

#include <cmath>

#include "kernel/emit/emitter.hpp"

namespace ferrite::kernel {

namespace {

/// The suffix of vec3, mat33 and quat for the scalar; f32 has none.
constexpr std::string_view suffixes[scalar_type_count] = {"?", "b",  "ub", "s",  "us", "i", "ui",
                                                          "l", "ul", "h",  "bf", "",   "d"};

std::string shortest(double x, bool single) {
  std::string text = single ? fmt::format("{}", static_cast<float>(x)) : fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string Emitter::scalar_name(ScalarType s) {
  static constexpr std::string_view names[scalar_type_count] = {
      "bool",  "int8",   "uint8", "int16",    "uint16", "int",   "uint32",
      "int64", "uint64", "half",  "bfloat16", "float",  "double"};
  const auto name = std::string(names[static_cast<int>(s)]);
  has_half_ |= s == ScalarType::f16;
  has_bfloat_ |= s == ScalarType::bf16;
  if (is_integer(s) && s != ScalarType::i32) aliases_.insert(name);
  return name;
}

std::string Emitter::type_name(Type type) {
  if (type.is_array()) {
    has_arrays_ = true;
    return fmt::format("array<{}>", type_name(type.element()));
  }
  if (type.kind == Type::Kind::none) return "void";
  if (type.is_scalar()) return scalar_name(type.scalar);
  const std::string on = target_ == Target::cuda ? "__device__ " : "";
  if (type.is_struct()) {
    const Struct& s = module_.structs[type.structure];
    const std::string name = struct_name(s.name);
    if (is_defined("struct " + name)) return name;
    std::string fields;
    for (const Variable& f : s.fields)
      fields += fmt::format("  {} {};\n", type_name(f.type), field_name(f.name));
    define("struct " + name, fmt::format("struct {} {{\n{}}};\n", name, fields));
    return name;
  }
  const std::string_view suffix = suffixes[static_cast<int>(type.scalar)];
  const std::string name = type.is_vector()   ? fmt::format("vec{}{}", type.rows, suffix)
                           : type.is_matrix() ? fmt::format("mat{}{}{}", type.rows, type.columns, suffix)
                                              : fmt::format("quat{}", suffix);
  if (is_defined("struct " + name)) return name;
  const std::string part =
      type_name(type.is_matrix() ? Type::vector(type.columns, type.scalar) : Type::of(type.scalar));
  const bool aligned = options_.aligned_vectors && type.is_vector() && type.rows != 3;
  const std::string alignment =
      aligned ? fmt::format("__align__({}) ", type.rows * bits_of(type.scalar) / 8) : std::string();
  define("struct " + name, fmt::format("struct {5}{0} {{{4}\n"
                                       "  {1} data[{2}];\n"
                                       "  {3}{1}& operator[](int i) {{ return data[i]; }}\n"
                                       "  {3}const {1}& operator[](int i) const {{ return data[i]; }}\n"
                                       "}};\n",
                                       name, part, type.rows, on,
                                       type.is_matrix()       ? "  // rows"
                                       : type.is_quaternion() ? "  // x, y, z, w"
                                                              : "",
                                       alignment));
  return name;
}

std::string Emitter::zero(Type type) {
  if (!type.is_scalar()) return type_name(type) + "{}";
  return literal(type.scalar, Number{});
}

std::string Emitter::literal(ScalarType s, Number n) {
  const std::string name = scalar_name(s);
  const bool cuda = target_ == Target::cuda;
  if (is_float(s)) {
    const double x = n.real;
    if (std::isfinite(x)) {
      if (s == ScalarType::f64) return shortest(x, false);
      return s == ScalarType::f32 ? shortest(x, true) + "f" : fmt::format("{}({}f)", name, shortest(x, true));
    }
    if (!cuda)
      return fmt::format("{}({}std::numeric_limits<float>::{}())", name, x < 0 ? "-" : "",
                         std::isnan(x) ? "quiet_NaN" : "infinity");
    return fmt::format("{}({}__int_as_float({}))", name, x < 0 ? "-" : "",
                       std::isnan(x) ? "0x7fffffff" : "0x7f800000");
  }
  const std::int64_t i = n.integer;
  switch (s) {
    case ScalarType::bool_:
      return i != 0 ? "true" : "false";
    case ScalarType::i32:
      return i == std::numeric_limits<std::int32_t>::min() ? "(-2147483647 - 1)" : std::to_string(i);
    case ScalarType::u32:
      return std::to_string(i) + "u";
    case ScalarType::i64:
      return i == std::numeric_limits<std::int64_t>::min() ? "(-9223372036854775807ll - 1)"
                                                           : std::to_string(i) + "ll";
    case ScalarType::u64:
      return std::to_string(static_cast<std::uint64_t>(i)) + "ull";
    default:
      return fmt::format("{}({})", name, i);
  }
}

std::string Emitter::converted(std::string text, Type from, Type to) {
  if (from == to) return text;
  const std::string name = type_name(to);
  if (to.is_composite()) {
    const std::string part = type_name(from);
    const std::string on = target_ == Target::cuda ? "__device__ inline" : "inline";
    const Type component = Type::of(to.scalar);
    std::string body;
    const bool rows = to.is_matrix();
    const std::string at = from.is_scalar() ? "x" : rows ? "x[i][j]" : "x[i]";
    const std::string one = converted(at, Type::of(from.scalar), component);
    body = rows ? fmt::format(
                      "  for (int i = 0; i < {0}; ++i)\n    for (int j = 0; j < {0}; ++j) r[i][j] = {1};\n",
                      to.rows, one)
                : fmt::format("  for (int i = 0; i < {0}; ++i) r[i] = {1};\n", to.rows, one);
    define(
        fmt::format("to_{}({})", name, part),
        fmt::format("{} {} to_{}({} x) {{\n  {} r;\n{}  return r;\n}}\n", on, name, name, part, name, body));
    return fmt::format("to_{}({})", name, text);
  }
  const ScalarType f = from.scalar, t = to.scalar;
  if (is_float(f) && bits_of(f) == 16 && t != ScalarType::f32)  // by way of f32, which holds them all
    return converted(fmt::format("float({})", text), float_type, to);
  if (t == ScalarType::bool_) return fmt::format("bool({})", text);
  // C leaves the conversion of floats that do not fit undefined. GPUs saturate 32-bit integers, as the
  // language does.
  const bool saturates = target_ == Target::cuda && bits_of(t) == 32;
  if (!is_float(f) || is_float(t) || saturates) return fmt::format("{}({})", name, text);
  const int width = bits_of(t) - (is_unsigned(t) ? 0 : 1);
  const std::string high = shortest(std::ldexp(1.0, width), false) + (f == ScalarType::f32 ? "f" : "");
  const std::int64_t least =
      is_unsigned(t) ? 0 : std::numeric_limits<std::int64_t>::min() >> (64 - bits_of(t));
  const std::int64_t most =
      is_unsigned(t) && width == 64 ? -1 : static_cast<std::int64_t>((std::uint64_t{1} << width) - 1);
  define(fmt::format("to_{}({})", name, scalar_name(f)),
         fmt::format("// Too large: the largest; too small: the smallest; NaN: 0.\n"
                     "{0} {1} to_{1}({2} x) {{\n"
                     "  if (x != x) return 0;\n"
                     "  if (x >= {3}) return {4};\n"
                     "  return x < {5} ? {6} : {1}(x);\n"
                     "}}\n",
                     target_ == Target::cuda ? "__device__ inline" : "inline", name, scalar_name(f), high,
                     literal(t, from_integer(most)), is_unsigned(t) ? std::string("0") : "-" + high,
                     literal(t, from_integer(least))));
  return fmt::format("to_{}({})", name, text);
}

}  // namespace ferrite::kernel
