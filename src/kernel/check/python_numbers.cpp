#include "kernel/check/python_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/core/error.hpp"

namespace ferrite::kernel {

namespace {

[[noreturn]] void not_in_python(std::string_view problem) { throw ValueError(std::string(problem)); }
[[noreturn]] void refuse_overflow() { not_in_python("this integer needs more than 64 bits"); }
[[noreturn]] void refuse_zero() { not_in_python("division by zero in Python"); }

PythonNumber whole_of(double x) {  // of a whole number
  if (!std::isfinite(x)) not_in_python("infinity and NaN are no integers in Python");
  if (x < -0x1p63 || x >= 0x1p63) refuse_overflow();
  return PythonNumber::of(static_cast<std::int64_t>(x));
}

/// Rounds to the even neighbour, whatever the thread's rounding mode is.
double half_to_even(double x) {
  const double low = std::floor(x), high = std::ceil(x);
  if (x - low != high - x) return x - low < high - x ? low : high;
  return std::fmod(low, 2) == 0 ? low : high;
}

PythonNumber integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t product = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(product, base, &product)) refuse_overflow();
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) refuse_overflow();
  }
  return PythonNumber::of(product);
}

PythonNumber real_power(double a, double b) {
  if (a == 0 && b < 0 && std::isfinite(b))
    not_in_python("0 to a negative power is division by zero in Python");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    not_in_python("a negative number to a fraction is complex in Python");
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
    not_in_python("the result is too large for Python's float");
  return PythonNumber::of(power);
}

/// The quotient and the remainder, which has the sign of b.
struct DividedDown {
  double quotient, remainder;
};
DividedDown divide_down(double a, double b) {  // as float.__divmod__
  if (b == 0) refuse_zero();
  double remainder = std::fmod(a, b), quotient = (a - remainder) / b;
  if (remainder == 0) {
    remainder = std::copysign(0.0, b);
  } else if ((b < 0) != (remainder < 0)) {
    remainder += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), remainder};
  const double whole = std::floor(quotient);
  return {quotient - whole > 0.5 ? whole + 1 : whole, remainder};
}

PythonNumber real_operation(Builtin operation, double a, double b) {
  switch (operation) {
    case Builtin::add:
      return PythonNumber::of(a + b);
    case Builtin::sub:
      return PythonNumber::of(a - b);
    case Builtin::mul:
      return PythonNumber::of(a * b);
    case Builtin::div:
      if (b == 0) refuse_zero();
      return PythonNumber::of(a / b);
    case Builtin::floordiv:
      return PythonNumber::of(divide_down(a, b).quotient);
    case Builtin::mod:
      return PythonNumber::of(divide_down(a, b).remainder);
    case Builtin::pow:
      return real_power(a, b);
    default:
      not_in_python(fmt::format("'{}' is for integers in Python", info(operation).symbol));
  }
}

/// a / b, rounded once.
PythonNumber true_division(PythonNumber a, PythonNumber b) {
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  for (const PythonNumber& n : {a, b})
    if (n.integer > exact || n.integer < -exact)
      not_in_python(
          "'/' of integers of more than 53 bits is rounded otherwise in Python: write //, or float(...)");
  return real_operation(Builtin::div, a.real, b.real);
}

PythonNumber shifted(bool left, std::int64_t a, std::int64_t by) {
  if (by < 0) not_in_python("a negative shift is an error in Python");
  if (!left) return PythonNumber::of(a >> std::min<std::int64_t>(by, 63));
  if (a == 0) return PythonNumber::of(a);
  if (by > 63 || ((a << by) >> by) != a) refuse_overflow();
  return PythonNumber::of(a << by);
}

PythonNumber integer_operation(Builtin operation, std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  bool overflow = false;
  switch (operation) {
    case Builtin::add:
      overflow = __builtin_add_overflow(a, b, &r);
      break;
    case Builtin::sub:
      overflow = __builtin_sub_overflow(a, b, &r);
      break;
    case Builtin::mul:
      overflow = __builtin_mul_overflow(a, b, &r);
      break;
    case Builtin::floordiv:
    case Builtin::mod: {
      if (b == 0) refuse_zero();
      const bool whole = operation == Builtin::floordiv;
      if (b == -1) return whole ? integer_operation(Builtin::sub, 0, a) : PythonNumber::of(std::int64_t{0});
      const bool down = a % b != 0 && (a % b < 0) != (b < 0);
      r = whole ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
      break;
    }
    case Builtin::bit_and:
      r = a & b;
      break;
    case Builtin::bit_or:
      r = a | b;
      break;
    case Builtin::bit_xor:
      r = a ^ b;
      break;
    case Builtin::lshift:
    case Builtin::rshift:
      return shifted(operation == Builtin::lshift, a, b);
    default:
      not_in_python(fmt::format("'{}' has no meaning here", info(operation).symbol));
  }
  if (overflow) refuse_overflow();
  return PythonNumber::of(r);
}

template <class T>
bool related(Builtin relation, T a, T b) {
  switch (relation) {
    case Builtin::lt:
      return a < b;
    case Builtin::le:
      return a <= b;
    case Builtin::gt:
      return a > b;
    case Builtin::ge:
      return a >= b;
    case Builtin::eq:
      return a == b;
    default:
      return a != b;
  }
}

}  // namespace

PythonNumber python_unary(Builtin operation, PythonNumber x) {
  if (operation == Builtin::not_) return PythonNumber::of(!x.is_true());
  if (operation == Builtin::invert) {
    if (x.is_real()) not_in_python("'~' is for integers in Python");
    return PythonNumber::of(~x.integer);
  }
  if (x.is_real()) return PythonNumber::of(operation == Builtin::neg ? -x.real : x.real);
  return operation == Builtin::neg ? integer_operation(Builtin::sub, 0, x.integer)
                                   : PythonNumber::of(x.integer);
}

PythonNumber python_binary(Builtin operation, PythonNumber a, PythonNumber b) {
  if (a.is_real() || b.is_real()) return real_operation(operation, a.real, b.real);
  if (operation == Builtin::div) return true_division(a, b);
  if (operation == Builtin::pow)
    return b.integer < 0 ? real_power(a.real, b.real) : integer_power(a.integer, b.integer);
  const PythonNumber r = integer_operation(operation, a.integer, b.integer);
  const bool bits =
      operation == Builtin::bit_and || operation == Builtin::bit_or || operation == Builtin::bit_xor;
  const bool booleans = a.kind == PythonNumber::Kind::boolean && b.kind == PythonNumber::Kind::boolean;
  return bits && booleans ? PythonNumber::of(r.integer != 0) : r;
}

bool python_compare(Builtin relation, PythonNumber a, PythonNumber b) {
  if (a.is_real() == b.is_real())
    return a.is_real() ? related(relation, a.real, b.real) : related(relation, a.integer, b.integer);
  // Python compares without rounding: beyond 64 bits by size, else as integers, the fraction after them.
  const double real = a.is_real() ? a.real : b.real;
  const std::int64_t integer = a.is_real() ? b.integer : a.integer;
  if (!(real >= -0x1p63 && real < 0x1p63))  // no integer of 64 bits is near
    return a.is_real() ? related(relation, real, 0.0) : related(relation, 0.0, real);
  const double low = std::floor(real);
  const auto whole = static_cast<std::int64_t>(low);
  const int order = integer != whole ? (integer < whole ? -1 : 1) : (real > low ? -1 : 0);
  return related(relation, a.is_real() ? -order : order, 0);
}

std::optional<PythonNumber> python_call(std::string_view function, std::span<const PythonNumber> args) {
  if ((function == "min" || function == "max") && args.size() >= 2) {
    PythonNumber best = args[0];
    for (const PythonNumber& x : args.subspan(1))
      if (python_compare(function == "min" ? Builtin::lt : Builtin::gt, x, best)) best = x;
    return best;
  }
  if (function == "pow" && args.size() == 2) return python_binary(Builtin::pow, args[0], args[1]);
  if (args.size() != 1) return std::nullopt;
  const PythonNumber x = args[0];
  if (function == "bool") return PythonNumber::of(x.is_true());
  if (function == "float") return PythonNumber::of(x.real);
  if (function == "int") return x.is_real() ? whole_of(std::trunc(x.real)) : PythonNumber::of(x.integer);
  if (function == "round") return x.is_real() ? whole_of(half_to_even(x.real)) : PythonNumber::of(x.integer);
  if (function == "abs") {
    if (x.is_real()) return PythonNumber::of(std::abs(x.real));
    return x.integer < 0 ? python_unary(Builtin::neg, x) : PythonNumber::of(x.integer);
  }
  return std::nullopt;
}

std::optional<PythonNumber> python_math(std::string_view function, std::span<const PythonNumber> args,
                                        bool is_numpy) {
  if (args.size() != 1) return std::nullopt;
  const double x = args[0].real;
  if (!is_numpy && (function == "floor" || function == "ceil"))
    return args[0].is_real() ? whole_of(function == "floor" ? std::floor(x) : std::ceil(x))
                             : PythonNumber::of(args[0].integer);
  struct Named {
    std::string_view name;
    double (*function)(double);
  };
  static constexpr Named functions[] = {{"sqrt", std::sqrt},   {"exp", std::exp},   {"log", std::log},
                                        {"sin", std::sin},     {"cos", std::cos},   {"tan", std::tan},
                                        {"floor", std::floor}, {"ceil", std::ceil}, {"log2", std::log2}};
  for (const auto& [name, compute] : functions) {
    if (name != function) continue;
    const double y = compute(x);
    if (!is_numpy && ((std::isnan(y) && !std::isnan(x)) || (std::isinf(y) && std::isfinite(x))))
      not_in_python(fmt::format("math.{} of {} is an error in Python", function, x));
    return PythonNumber::of(y);
  }
  return std::nullopt;
}

}  // namespace ferrite::kernel
