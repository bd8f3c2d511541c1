// Names of types, in the library's words and in Warp's.
#include "ferrite/kernel/type.hpp"

#include <fmt/format.h>

namespace ferrite::kernel {

namespace {

struct ScalarNames {
  std::string_view own, warp, suffix;  // suffix: of vectors over it, "vec3d"; none where Warp has no such
};
constexpr ScalarNames scalar_names[scalar_type_count] = {
    {"bool", "bool", ""},    {"i8", "int8", "b"},     {"u8", "uint8", "ub"},    {"i16", "int16", "s"},
    {"u16", "uint16", "us"}, {"i32", "int32", "i"},   {"u32", "uint32", "ui"},  {"i64", "int64", "l"},
    {"u64", "uint64", "ul"}, {"f16", "float16", "h"}, {"bf16", "bfloat16", ""}, {"f32", "float32", "f"},
    {"f64", "float64", "d"},
};

const ScalarNames& names_of(ScalarType s) { return scalar_names[static_cast<int>(s)]; }

std::string element_name(Type type, std::span<const std::string> struct_names) {
  const std::string_view suffix = type.scalar == ScalarType::f32 ? "" : names_of(type.scalar).suffix;
  switch (type.kind) {
    case Type::Kind::none:
      return "None";
    case Type::Kind::tuple:
      return fmt::format("{} values", type.rows);
    case Type::Kind::scalar:
      if (type.scalar == ScalarType::bool_) return "bool";
      if (type.scalar == ScalarType::i32) return "int";
      if (type.scalar == ScalarType::f32) return "float";
      return fmt::format("wp.{}", names_of(type.scalar).warp);
    case Type::Kind::vector:
      return fmt::format("wp.vec{}{}", type.rows, suffix);
    case Type::Kind::matrix:
      return fmt::format("wp.mat{}{}{}", type.rows, type.columns, suffix);
    case Type::Kind::quaternion:
      return fmt::format("wp.quat{}", suffix);
    default:
      return type.structure < struct_names.size() ? struct_names[type.structure]
                                                  : fmt::format("struct {}", type.structure);
  }
}

}  // namespace

std::string_view to_string(ScalarType scalar) { return names_of(scalar).own; }

std::string to_string(Type type, std::span<const std::string> struct_names) {
  const std::string element = element_name(type, struct_names);
  if (!type.is_array()) return element;
  return type.dims == 1 ? fmt::format("wp.array[{}]", element)
                        : fmt::format("wp.array{}d[{}]", type.dims, element);
}

std::optional<Type> type_from_name(std::string_view name) {
  for (int i = 0; i < scalar_type_count; ++i)
    if (name == scalar_names[i].warp) return Type::of(static_cast<ScalarType>(i));
  if (name == "float") return float_type;
  if (name == "int") return int_type;
  const auto digit = [&](std::size_t at) { return name.size() > at ? name[at] - '0' : 0; };
  Type type;
  std::size_t prefix = 0;
  if (name.starts_with("vec") && digit(3) >= 2 && digit(3) <= 4) {
    type = Type::vector(digit(3));
    prefix = 4;
  } else if (name.starts_with("mat") && digit(3) >= 2 && digit(3) <= 4 && digit(3) == digit(4)) {
    type = Type::matrix(digit(3));
    prefix = 5;
  } else if (name.starts_with("quat")) {
    type = Type::quaternion();
    prefix = 4;
  } else {
    return std::nullopt;
  }
  const std::string_view suffix = name.substr(prefix);
  if (suffix.empty()) return type;
  for (int i = 0; i < scalar_type_count; ++i) {
    const auto scalar = static_cast<ScalarType>(i);
    if (suffix == scalar_names[i].suffix && (type.is_vector() || is_float(scalar)))
      return type.with_scalar(scalar);
  }
  return std::nullopt;
}

}  // namespace ferrite::kernel
