// The arguments of an evaluation function of the builtin table, and the rounding of its results.
#pragma once

#include <bit>
#include <cmath>
#include <span>
#include <string_view>

#include "ferrite/core/dtype.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// A float rounded to its type; no rounding in f64 mode.
inline double round_to(ScalarType type, Precision precision, double x) {
  if (precision == Precision::f64 || type == ScalarType::f64) return x;
  if (type == ScalarType::f32) return static_cast<float>(x);
  return type == ScalarType::f16 ? to_float(convert<Half>(x)) : to_float(convert<BFloat16>(x));
}

/// An integer reduced to the width of its type: arithmetic wraps around.
inline std::int64_t wrap_to(ScalarType type, std::uint64_t x) {
  if (type == ScalarType::bool_) return x != 0;
  const int shift = 64 - bits_of(type);
  if (is_unsigned(type)) return static_cast<std::int64_t>(x << shift >> shift);
  return static_cast<std::int64_t>(x << shift) >> shift;
}

/// A scalar of one type as another: floats truncate toward zero and saturate, NaN becomes 0, integers wrap,
/// everything but zero is true.
Number cast_number(ScalarType from, ScalarType to, Precision precision, Number x);
/// Any scalar as a double.
inline double as_real(ScalarType type, Number x) {
  if (is_float(type)) return x.real;
  return type == ScalarType::u64 ? static_cast<double>(static_cast<std::uint64_t>(x.integer))
                                 : static_cast<double>(x.integer);
}

/// What builtins can ask of the running interpreter.
class Machine {
 public:
  virtual ~Machine() = default;
  /// The numbers of the element of array `handle`; an index out of bounds is an error.
  virtual Number* locate(Number handle, std::span<const std::int64_t> indices) = 0;
  virtual std::int64_t extent(Number handle, int axis) = 0;
  /// Index `axis` of the running thread in the grid; the whole number of the thread if `axis` is negative.
  virtual std::int64_t thread_index(int axis) = 0;
  virtual std::int64_t block_dim() = 0;
  [[noreturn]] virtual void fail(std::string_view problem) = 0;
};

struct BuiltinCall {
  Machine& machine;
  Precision precision;
  Type type;                    // of the result
  std::span<const Type> types;  // of the arguments
  Number* const* values;        // the numbers of each argument
  Number* out;                  // room for the numbers of the result

  Type type_of(int i) const { return types[static_cast<std::size_t>(i)]; }
  int count() const { return static_cast<int>(types.size()); }
  double real(int arg, int component = 0) const { return values[arg][component].real; }
  std::int64_t integer(int arg, int component = 0) const { return values[arg][component].integer; }
  bool floating() const { return is_float(type_of(0).scalar); }

  /// Stores component i of the result, rounded to its type.
  void store(int i, double x) const { out[i].real = round_to(type.scalar, precision, x); }
  void store_integer(int i, std::uint64_t x) const { out[i].integer = wrap_to(type.scalar, x); }
};

}  // namespace ferrite::kernel
