// Operators. Integers wrap around, / and % of integers truncate as in C, // floors; vectors, matrices and
// quaternions have the operators of linear algebra.
#include <fmt/format.h>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::string_view group = "Operators";
using Unsigned = std::uint64_t;

Result numeric(Types t) {
  return t.size() == 1 && (is_number(t[0]) || t[0].is_composite()) ? Result(t[0]) : std::nullopt;
}

Result sums(Types t) {
  return t.size() == 2 && all_same(t) && (is_number(t[0]) || t[0].is_composite()) ? Result(t[0])
                                                                                  : std::nullopt;
}

Result products(Types t) {
  if (t.size() != 2 || t[0].is_array() || t[1].is_array() || t[0].scalar != t[1].scalar) return std::nullopt;
  if (is_number(t[0])) return is_number(t[1]) || t[1].is_composite() ? Result(t[1]) : std::nullopt;
  if (!t[0].is_composite()) return std::nullopt;
  if (is_number(t[1])) return t[0];
  if (t[0] == t[1]) return t[0].is_vector() ? std::nullopt : Result(t[0]);  // matrices, quaternions
  if (t[0].is_matrix() && t[1].is_vector() && t[0].rows == t[1].rows) return t[1];
  if (t[0].is_vector() && t[1].is_matrix() && t[0].rows == t[1].rows) return t[0];
  return std::nullopt;
}

Result quotients(Types t) {
  if (t.size() != 2 || t[0].is_array() || t[1].is_array() || t[0].scalar != t[1].scalar) return std::nullopt;
  if (is_number(t[1])) return is_number(t[0]) || t[0].is_composite() ? Result(t[0]) : std::nullopt;
  return is_number(t[0]) && t[1].is_composite() ? Result(t[1]) : std::nullopt;
}

template <int n>
Result integers(Types t) {
  return static_cast<int>(t.size()) == n && all_same(t) &&
                 (t[0].is_int() || (t[0].is_vector() && is_integer(t[0].scalar)))
             ? Result(t[0])
             : std::nullopt;
}

Result ordered(Types t) {
  return t.size() == 2 && all_same(t) && is_number(t[0]) ? Result(bool_type) : std::nullopt;
}
Result comparable(Types t) {
  return t.size() == 2 && all_same(t) && (t[0].is_scalar() || t[0].is_composite()) ? Result(bool_type)
                                                                                   : std::nullopt;
}
Result truth(Types t) { return t.size() == 1 && t[0].is_bool() ? Result(bool_type) : std::nullopt; }

/// Component by component; a scalar operand stands for all components.
template <auto real, auto integer>
void each(BuiltinCall& c) {
  const int left = c.type_of(0).is_scalar() ? 0 : 1;
  const int right = c.count() < 2 || c.type_of(1).is_scalar() ? 0 : 1;
  const int second = c.count() < 2 ? 0 : 1;
  for (int i = 0; i < c.type.components(); ++i) {
    if (c.floating())
      c.store(i, real(c.real(0, i * left), c.real(second, i * right)));
    else
      c.store_integer(i, integer(c, c.integer(0, i * left), c.integer(second, i * right)));
  }
}

/// Quotient and remainder as in C, both exact.
struct Division {
  std::int64_t quotient, remainder;
};
Division divide(BuiltinCall& c, std::int64_t a, std::int64_t b) {
  if (b == 0) c.machine.fail(fmt::format("{} divided by zero", a));
  if (is_unsigned(c.type.scalar)) {
    const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    return {static_cast<std::int64_t>(x / y), static_cast<std::int64_t>(x % y)};
  }
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min() >> (64 - bits_of(c.type.scalar));
  if (a == lowest && b == -1) c.machine.fail(fmt::format("{} / -1 does not fit {}", a, to_string(c.type)));
  return {a / b, a % b};
}

constexpr auto add_real = [](double a, double b) { return a + b; };
constexpr auto sub_real = [](double a, double b) { return a - b; };
constexpr auto mul_real = [](double a, double b) { return a * b; };
constexpr auto div_real = [](double a, double b) { return a / b; };
constexpr auto add_integer = [](BuiltinCall&, Unsigned a, Unsigned b) { return a + b; };
constexpr auto sub_integer = [](BuiltinCall&, Unsigned a, Unsigned b) { return a - b; };
constexpr auto mul_integer = [](BuiltinCall&, Unsigned a, Unsigned b) { return a * b; };
constexpr auto div_integer = [](BuiltinCall& c, std::int64_t a, std::int64_t b) {
  return static_cast<Unsigned>(divide(c, a, b).quotient);
};
constexpr auto floordiv_integer = [](BuiltinCall& c, std::int64_t a, std::int64_t b) {
  const Division d = divide(c, a, b);
  const bool below = !is_unsigned(c.type.scalar) && d.remainder != 0 && (d.remainder < 0) != (b < 0);
  return static_cast<Unsigned>(d.quotient - below);
};
constexpr auto mod_integer = [](BuiltinCall& c, std::int64_t a, std::int64_t b) {
  if (b == -1 && !is_unsigned(c.type.scalar)) return Unsigned{0};
  return static_cast<Unsigned>(divide(c, a, b).remainder);
};
/// A float // floors the rounded quotient.
void floordiv(BuiltinCall& c) {
  if (c.floating())
    c.store(0, std::floor(round_to(c.type.scalar, c.precision, c.real(0) / c.real(1))));
  else
    each<div_real, floordiv_integer>(c);
}
constexpr auto fmod_real = [](double a, double b) { return std::fmod(a, b); };
constexpr auto no_real = [](double a, double) { return a; };

void multiply(BuiltinCall& c) {
  const Type a = c.type_of(0), b = c.type_of(1);
  if (a.is_scalar() || b.is_scalar()) return each<mul_real, mul_integer>(c);
  const int n = a.rows;
  if (a.is_quaternion()) {
    const double ax = c.real(0, 0), ay = c.real(0, 1), az = c.real(0, 2), aw = c.real(0, 3);
    const double bx = c.real(1, 0), by = c.real(1, 1), bz = c.real(1, 2), bw = c.real(1, 3);
    c.store(0, aw * bx + bw * ax + ay * bz - by * az);
    c.store(1, aw * by + bw * ay + az * bx - bz * ax);
    c.store(2, aw * bz + bw * az + ax * by - bx * ay);
    c.store(3, aw * bw - ax * bx - ay * by - az * bz);
    return;
  }
  const int rows = a.is_matrix() ? n : 1, columns = b.is_matrix() ? n : 1;  // a vector is a row or a column
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += c.real(0, i * n + k) * c.real(1, k * columns + j);
      c.store(i * columns + j, sum);
    }
  }
}

template <bool left>
void shift(BuiltinCall& c) {
  const int bits = bits_of(c.type.scalar);
  for (int i = 0; i < c.type.components(); ++i) {
    const std::int64_t x = c.integer(0, i), by = c.integer(1, i);
    if (by < 0 || by >= bits)
      c.machine.fail(
          fmt::format("shift by {}: {} has {} bits", by, to_string(Type::of(c.type.scalar)), bits));
    const auto raw = static_cast<Unsigned>(x);
    c.store_integer(i, left                         ? raw << by
                       : is_unsigned(c.type.scalar) ? raw >> by
                                                    : static_cast<Unsigned>(x >> by));
  }
}

constexpr auto and_integer = [](BuiltinCall&, Unsigned a, Unsigned b) { return a & b; };
constexpr auto or_integer = [](BuiltinCall&, Unsigned a, Unsigned b) { return a | b; };
constexpr auto xor_integer = [](BuiltinCall&, Unsigned a, Unsigned b) { return a ^ b; };
constexpr auto invert_integer = [](BuiltinCall&, Unsigned a, Unsigned) { return ~a; };
constexpr auto neg_real = [](double a, double) { return -a; };
constexpr auto neg_integer = [](BuiltinCall&, Unsigned a, Unsigned) { return Unsigned{0} - a; };
constexpr auto same_integer = [](BuiltinCall&, Unsigned a, Unsigned) { return a; };
constexpr auto pow_real = [](double a, double b) { return std::pow(a, b); };

/// For scalars or composites: true if it holds for all components (`all`) or for one of them.
template <auto relation, bool all = true>
void compare(BuiltinCall& c) {
  const ScalarType s = c.type_of(0).scalar;
  bool result = all;
  for (int i = 0; i < c.type_of(0).components(); ++i) {
    const bool holds = is_float(s)            ? relation(c.real(0, i), c.real(1, i))
                       : s == ScalarType::u64 ? relation(static_cast<Unsigned>(c.integer(0, i)),
                                                         static_cast<Unsigned>(c.integer(1, i)))
                                              : relation(c.integer(0, i), c.integer(1, i));
    result = all ? result && holds : result || holds;
  }
  c.out[0].integer = result;
}
void logical_not(BuiltinCall& c) { c.out[0].integer = c.integer(0) == 0; }

constexpr auto less = [](auto a, auto b) { return a < b; };
constexpr auto less_equal = [](auto a, auto b) { return a <= b; };
constexpr auto greater = [](auto a, auto b) { return a > b; };
constexpr auto greater_equal = [](auto a, auto b) { return a >= b; };
constexpr auto equal = [](auto a, auto b) { return a == b; };
constexpr auto not_equal = [](auto a, auto b) { return a != b; };

constexpr Effect none = Effect::none;
constexpr BuiltinInfo rows[] = {
    {Builtin::neg, "neg", "-", group, "neg(x: Any) -> Any", "-x, component by component.", none, numeric,
     each<neg_real, neg_integer>},
    {Builtin::pos, "pos", "+", group, "pos(x: Any) -> Any", "+x: x itself.", none, numeric,
     each<no_real, same_integer>},
    {Builtin::invert, "invert", "~", group, "invert(x: Int) -> Int", "~x: every bit flipped.", none,
     integers<1>, each<no_real, invert_integer>},
    {Builtin::not_, "unot", "not", group, "unot(x: Bool) -> Bool", "not x.", none, truth, logical_not},
    {Builtin::add, "add", "+", group, "add(a: Any, b: Any) -> Any", "a + b of one type.", none, sums,
     each<add_real, add_integer>},
    {Builtin::sub, "sub", "-", group, "sub(a: Any, b: Any) -> Any", "a - b of one type.", none, sums,
     each<sub_real, sub_integer>},
    {Builtin::mul, "mul", "*", group, "mul(a: Any, b: Any) -> Any",
     "a * b: scalars, a scalar and a composite, matrix and matrix, matrix and vector, quaternions. Also a @ "
     "b.",
     none, products, multiply},
    {Builtin::div, "div", "/", group, "div(a: Any, b: Any) -> Any",
     "a / b: scalars, or a composite and a scalar. Integers truncate toward zero.", none, quotients,
     each<div_real, div_integer>},
    {Builtin::floordiv, "floordiv", "//", group, "floordiv(a: Scalar, b: Scalar) -> Scalar",
     "a // b: the quotient rounded down.", none, numbers<2>, floordiv},
    {Builtin::mod, "mod", "%", group, "mod(a: Any, b: Any) -> Any",
     "a % b: what truncating division leaves, with the sign of a (C's % and fmod).", none,
     numbers_or_vectors<2>, each<fmod_real, mod_integer>},
    {Builtin::pow, "pow", "**", group, "pow(x: Float, y: Float) -> Float", "x ** y: x to the power of y.",
     none, floats<2>, each_real<pow_real>},
    {Builtin::bit_and, "bit_and", "&", group, "bit_and(a: Int, b: Int) -> Int", "a & b.", none, integers<2>,
     each<no_real, and_integer>},
    {Builtin::bit_or, "bit_or", "|", group, "bit_or(a: Int, b: Int) -> Int", "a | b.", none, integers<2>,
     each<no_real, or_integer>},
    {Builtin::bit_xor, "bit_xor", "^", group, "bit_xor(a: Int, b: Int) -> Int", "a ^ b.", none, integers<2>,
     each<no_real, xor_integer>},
    {Builtin::lshift, "lshift", "<<", group, "lshift(a: Int, b: Int) -> Int",
     "a << b, 0 <= b < bits of the type.", none, integers<2>, shift<true>},
    {Builtin::rshift, "rshift", ">>", group, "rshift(a: Int, b: Int) -> Int",
     "a >> b, 0 <= b < bits of the type; signed integers keep their sign.", none, integers<2>, shift<false>},
    {Builtin::lt, "lt", "<", group, "lt(a: Scalar, b: Scalar) -> Bool", "a < b.", none, ordered,
     compare<less>},
    {Builtin::le, "le", "<=", group, "le(a: Scalar, b: Scalar) -> Bool", "a <= b.", none, ordered,
     compare<less_equal>},
    {Builtin::gt, "gt", ">", group, "gt(a: Scalar, b: Scalar) -> Bool", "a > b.", none, ordered,
     compare<greater>},
    {Builtin::ge, "ge", ">=", group, "ge(a: Scalar, b: Scalar) -> Bool", "a >= b.", none, ordered,
     compare<greater_equal>},
    {Builtin::eq, "eq", "==", group, "eq(a: Any, b: Any) -> Bool", "a == b; of composites: all components.",
     none, comparable, compare<equal>},
    {Builtin::ne, "ne", "!=", group, "ne(a: Any, b: Any) -> Bool",
     "a != b; of composites: some component (Warp has no != of composites).", none, comparable,
     compare<not_equal, false>},
};

}  // namespace

std::span<const BuiltinInfo> operator_builtins() { return rows; }

}  // namespace ferrite::kernel
