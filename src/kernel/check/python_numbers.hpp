// Numbers as Python computes them, for what Python evaluates before a kernel runs. Python's integers have no
// end; here they have 64 bits, and what does not fit is an error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ferrite/kernel/builtin.hpp"

namespace ferrite::kernel {

struct PythonNumber {
  enum class Kind : std::uint8_t { boolean, integer, real } kind;
  std::int64_t integer = 0;  // of booleans: 0 or 1
  double real = 0;           // the same number for every kind, rounded

  static PythonNumber of(bool b) { return {Kind::boolean, b, b ? 1.0 : 0.0}; }
  static PythonNumber of(std::int64_t i) { return {Kind::integer, i, static_cast<double>(i)}; }
  static PythonNumber of(double r) { return {Kind::real, 0, r}; }
  bool is_real() const { return kind == Kind::real; }
  bool is_true() const { return is_real() ? real != 0 : integer != 0; }
};

// All throw ValueError for what is an exception in Python, and for results that PythonNumber cannot hold.

/// -x, +x, ~x, not x
PythonNumber python_unary(Builtin operation, PythonNumber x);
/// + - * / // % ** & | ^ << >>
PythonNumber python_binary(Builtin operation, PythonNumber a, PythonNumber b);
/// < <= > >= == !=
bool python_compare(Builtin relation, PythonNumber a, PythonNumber b);
/// abs, bool, float, int, max, min, pow, round. Nothing for other names and numbers of arguments.
std::optional<PythonNumber> python_call(std::string_view function, std::span<const PythonNumber> args);
/// sqrt, floor, ... of Python's module `math`, or of NumPy, which gives infinity and NaN where math throws.
std::optional<PythonNumber> python_math(std::string_view function, std::span<const PythonNumber> args,
                                        bool is_numpy);

}  // namespace ferrite::kernel
