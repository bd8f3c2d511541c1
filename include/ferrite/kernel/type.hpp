// The types of the kernel language: scalars, small vectors and matrices, quaternions, structs and arrays of
// them. A Type is a value of eight bytes; a struct is named by its place in Module::structs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite::kernel {

enum class ScalarType : std::uint8_t { bool_, i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };
inline constexpr int scalar_type_count = 13;

constexpr bool is_float(ScalarType s) { return s >= ScalarType::f16; }
constexpr bool is_integer(ScalarType s) { return s >= ScalarType::i8 && s <= ScalarType::u64; }
constexpr bool is_unsigned(ScalarType s) {
  return s == ScalarType::u8 || s == ScalarType::u16 || s == ScalarType::u32 || s == ScalarType::u64;
}
constexpr int bits_of(ScalarType s) {
  constexpr std::uint8_t bits[scalar_type_count] = {8, 8, 8, 16, 16, 32, 32, 64, 64, 16, 16, 32, 64};
  return bits[static_cast<int>(s)];
}
/// "f32", "bool", ... as in the rest of the library.
FERRITE_API std::string_view to_string(ScalarType scalar);

/// The kind of a value.
///   none        no value: the result of a function that returns nothing
///   tuple       `rows` values at once: what wp.tid() and functions with several results give; exists only
///               on the right of an assignment to as many targets
///   scalar, vector (`rows` components), matrix (`rows` x `columns`), quaternion (x, y, z, w)
///   structure   Module::structs[structure]
/// `dims` > 0 makes it an array of such values with that many axes.
struct Type {
  enum class Kind : std::uint8_t { none, tuple, scalar, vector, matrix, quaternion, structure };

  Kind kind = Kind::none;
  ScalarType scalar = ScalarType::f32;
  std::uint8_t rows = 1, columns = 1;
  std::uint8_t dims = 0;
  std::uint16_t structure = 0;

  static constexpr Type none() { return {}; }
  static constexpr Type tuple(std::size_t size) {
    return {Kind::tuple, ScalarType::i32, static_cast<std::uint8_t>(size)};
  }
  static constexpr Type of(ScalarType s) { return {Kind::scalar, s}; }
  static constexpr Type vector(int length, ScalarType s = ScalarType::f32) {
    return {Kind::vector, s, static_cast<std::uint8_t>(length)};
  }
  static constexpr Type matrix(int size, ScalarType s = ScalarType::f32) {
    return {Kind::matrix, s, static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(size)};
  }
  static constexpr Type quaternion(ScalarType s = ScalarType::f32) { return {Kind::quaternion, s, 4}; }
  static constexpr Type structure_of(std::size_t index) {
    return {Kind::structure, ScalarType::f32, 1, 1, 0, static_cast<std::uint16_t>(index)};
  }
  constexpr Type array(int axes) const {
    Type t = *this;
    t.dims = static_cast<std::uint8_t>(axes);
    return t;
  }
  /// The element type of an array; the type itself if it is not an array.
  constexpr Type element() const { return array(0); }
  /// A vector, matrix or quaternion of the same form over another scalar.
  constexpr Type with_scalar(ScalarType s) const {
    Type t = *this;
    t.scalar = s;
    return t;
  }
  /// Scalars in a scalar, vector, matrix or quaternion.
  constexpr int components() const { return rows * columns; }

  constexpr bool is_array() const { return dims > 0; }
  constexpr bool is(Kind k) const { return kind == k && dims == 0; }
  constexpr bool is_scalar() const { return is(Kind::scalar); }
  constexpr bool is_bool() const { return is_scalar() && scalar == ScalarType::bool_; }
  constexpr bool is_int() const { return is_scalar() && is_integer(scalar); }
  constexpr bool is_float() const { return is_scalar() && kernel::is_float(scalar); }
  constexpr bool is_vector() const { return is(Kind::vector); }
  constexpr bool is_matrix() const { return is(Kind::matrix); }
  constexpr bool is_quaternion() const { return is(Kind::quaternion); }
  constexpr bool is_struct() const { return is(Kind::structure); }
  /// A vector, matrix or quaternion.
  constexpr bool is_composite() const { return is_vector() || is_matrix() || is_quaternion(); }

  friend constexpr bool operator==(const Type&, const Type&) = default;
};

inline constexpr Type bool_type = Type::of(ScalarType::bool_);
inline constexpr Type int_type = Type::of(ScalarType::i32);
inline constexpr Type float_type = Type::of(ScalarType::f32);

/// The type as kernels write it: "float", "wp.uint32", "wp.vec3", "wp.mat22d", "wp.array2d[wp.vec3]".
/// `struct_names` gives structs their names; without it they are "struct 0".
FERRITE_API std::string to_string(Type type, std::span<const std::string> struct_names = {});

/// The type of a name in Warp's namespace, without "wp.": "float32", "vec3", "vec3f", "mat22d", "quat".
FERRITE_API std::optional<Type> type_from_name(std::string_view name);

}  // namespace ferrite::kernel
