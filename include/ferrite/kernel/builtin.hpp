// The table of everything the kernel language can do: operators, math, vectors, atomics, random numbers. Each
// row holds everything about one builtin. Checker, printer, interpreter, emitters and documentation read it,
// and a test fails while a cell is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ferrite/kernel/type.hpp"

namespace ferrite::kernel {

// clang-format off
enum class Builtin : std::uint8_t {
  // operators
  neg, pos, invert, not_, add, sub, mul, div, floordiv, mod, pow, bit_and, bit_or, bit_xor, lshift, rshift,
  lt, le, gt, ge, eq, ne,
  // scalar math
  abs, sign, copysign, step, nonzero, min, max, clamp, lerp, smoothstep, sqrt, cbrt, exp, log, log2, log10,
  sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, erf, erfc, degrees, radians, floor, ceil, trunc,
  round, rint, frac, isfinite, isnan, isinf, bit_count,
  // vectors and matrices
  dot, ddot, cross, length, length_sq, normalize, outer, skew, cw_mul, cw_div, argmin, argmax, norm_l1,
  transpose, determinant, inverse, trace, diag, get_diag, identity, matrix_from_rows, matrix_from_cols,
  // quaternions
  quat_identity, quat_from_axis_angle, quat_rpy, quat_inverse, quat_rotate, quat_rotate_inv, quat_slerp,
  quat_to_matrix, quat_from_matrix,
  // threads, arrays and choices
  tid, block_dim, sync_threads, len, shape, where, atomic_add, atomic_sub, atomic_min, atomic_max,
  atomic_exch, atomic_cas, atomic_and, atomic_or, atomic_xor, expect_eq, expect_near,
  // random numbers
  rand_init, randi, randu, randf, randn, sample_triangle, sample_unit_ring, sample_unit_disk,
  sample_unit_square, sample_unit_cube, sample_unit_sphere_surface, sample_unit_sphere,
  sample_unit_hemisphere_surface, sample_unit_hemisphere,
};
// clang-format on
inline constexpr int builtin_count = static_cast<int>(Builtin::sample_unit_hemisphere) + 1;

/// The side effect of a call. Only calls without effect may be left out, repeated or moved.
enum class Effect : std::uint8_t {
  none,
  updates_first,  // writes its first argument, a variable: the random numbers
  writes_array,   // reads and writes an element of its first argument: the atomics
  asserts,        // stops the kernel with an error
  synchronises,   // a barrier
};

/// The type of the result for these argument types, or nothing if there is no such overload.
using ResultRule = std::optional<Type> (*)(std::span<const Type> arguments);

struct BuiltinCall;  // arguments and result while the interpreter runs; src/kernel/builtins/call.hpp
using EvaluateBuiltin = void (*)(BuiltinCall&);

struct BuiltinInfo {
  Builtin id;
  std::string_view name;    // as in wp.name(...); operators have one too
  std::string_view symbol;  // of operators: "+"; else empty
  std::string_view group;   // heading in the documentation
  /// Parameters and result, as shown in the documentation. The names before the colons are the keywords of a
  /// call: "clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar".
  std::string_view signature;
  std::string_view doc;
  Effect effect;
  ResultRule result;
  EvaluateBuiltin evaluate;
};

/// All builtins, in the order of the enum.
FERRITE_API std::span<const BuiltinInfo> builtins();
FERRITE_API const BuiltinInfo& info(Builtin id);
/// By the name in Warp's namespace; null if there is none.
FERRITE_API const BuiltinInfo* find_builtin(std::string_view name);

}  // namespace ferrite::kernel
