// How operators are written. Composites have them as functions, so that expressions stay expressions.
#include "kernel/emit/rules.hpp"

namespace ferrite::kernel {

namespace {

using namespace fit;

bool scaling(Types t) { return t[0].is_scalar() && t[1].is_composite(); }
bool scaled(Types t) { return t[0].is_composite() && t[1].is_scalar(); }
bool matrix_matrix(Types t) { return t[0].is_matrix() && t[1].is_matrix(); }
bool matrix_vector(Types t) { return t[0].is_matrix() && t[1].is_vector(); }
bool vector_matrix(Types t) { return t[0].is_vector() && t[1].is_matrix(); }
bool quaternions(Types t) { return t[0].is_quaternion() && t[1].is_quaternion(); }

constexpr EmitRule rules[] = {
    {Builtin::neg, scalar, "-$0"},
    {Builtin::neg, composite, "-$0", "each -x[i]"},
    {Builtin::pos, any, "$0"},
    {Builtin::invert, scalar, "~$0"},
    {Builtin::invert, composite, "~$0", "each ~x[i]"},
    {Builtin::not_, any, "!$0"},
    {Builtin::add, scalar, "$0 + $1"},
    {Builtin::add, composite, "$0 + $1", "each a[i] + b[i]"},
    {Builtin::sub, scalar, "$0 - $1"},
    {Builtin::sub, composite, "$0 - $1", "each a[i] - b[i]"},
    {Builtin::mul, scaling, "$0 * $1", "each a * b[i]"},
    {Builtin::mul, scalar, "$0 * $1"},
    {Builtin::mul, scaled, "$0 * $1", "each a[i] * b"},
    {Builtin::mul, matrix_matrix, "$0 * $1", R"(
$R r{};
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j)
    for (int k = 0; k < $n; ++k) r[i][j] += a[i][k] * b[k][j];
return r;)"},
    {Builtin::mul, matrix_vector, "$0 * $1", R"(
$R r{};
for (int i = 0; i < $n; ++i)
  for (int k = 0; k < $n; ++k) r[i] += a[i][k] * b[k];
return r;)"},
    {Builtin::mul, vector_matrix, "$0 * $1", R"(
$R r{};
for (int j = 0; j < $n; ++j)
  for (int k = 0; k < $n; ++k) r[j] += a[k] * b[k][j];
return r;)"},
    {Builtin::mul, quaternions, "$0 * $1", R"(
return $R{a[3] * b[0] + b[3] * a[0] + a[1] * b[2] - b[1] * a[2],
          a[3] * b[1] + b[3] * a[1] + a[2] * b[0] - b[2] * a[0],
          a[3] * b[2] + b[3] * a[2] + a[0] * b[1] - b[0] * a[1],
          a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]};)"},
    {Builtin::div, scaling, "$0 / $1", "each a / b[i]"},
    {Builtin::div, scalar, "$0 / $1"},
    {Builtin::div, scaled, "$0 / $1", "each a[i] / b"},
    {Builtin::floordiv, real, "floor_div($0, $1)", "return $m{floor}(a / b);"},
    {Builtin::floordiv, unsigned_whole, "$0 / $1"},
    {Builtin::floordiv, whole, "floor_div($0, $1)", R"(
const $T remainder = a % b;
return a / b - (remainder != 0 && (remainder < 0) != (b < 0));)"},
    {Builtin::mod, real, "$m{fmod}($0, $1)"},
    {Builtin::mod, unsigned_whole, "$0 % $1"},
    // On CPUs the lowest number % -1 traps.
    {Builtin::mod, whole, cuda_only("$0 % $1")},
    {Builtin::mod, whole, cpp_only("remainder_of($0, $1)"), "return b == -1 ? 0 : a % b;"},
    {Builtin::mod, real_composite, "mod($0, $1)", "each $m{fmod}(a[i], b[i])"},
    {Builtin::mod, composite, "mod($0, $1)", "each b[i] == $T(-1) ? $T(0) : $T(a[i] % b[i])"},
    {Builtin::pow, any, "$m{pow}($0, $1)"},
    {Builtin::bit_and, scalar, "$0 & $1"},
    {Builtin::bit_and, composite, "$0 & $1", "each a[i] & b[i]"},
    {Builtin::bit_or, scalar, "$0 | $1"},
    {Builtin::bit_or, composite, "$0 | $1", "each a[i] | b[i]"},
    {Builtin::bit_xor, scalar, "$0 ^ $1"},
    {Builtin::bit_xor, composite, "$0 ^ $1", "each a[i] ^ b[i]"},
    {Builtin::lshift, scalar, "$0 << $1"},
    {Builtin::lshift, composite, "$0 << $1", "each a[i] << b[i]"},
    {Builtin::rshift, scalar, "$0 >> $1"},
    {Builtin::rshift, composite, "$0 >> $1", "each a[i] >> b[i]"},
    {Builtin::lt, any, "$0 < $1"},
    {Builtin::le, any, "$0 <= $1"},
    {Builtin::gt, any, "$0 > $1"},
    {Builtin::ge, any, "$0 >= $1"},
    {Builtin::eq, scalar, "$0 == $1"},
    {Builtin::eq, matrix, "$0 == $1", R"(
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j)
    if (!(a[i][j] == b[i][j])) return false;
return true;)"},
    {Builtin::eq, composite, "$0 == $1", R"(
for (int i = 0; i < $n; ++i)
  if (!(a[i] == b[i])) return false;
return true;)"},
    {Builtin::ne, scalar, "$0 != $1"},
    {Builtin::ne, composite, "$0 != $1", "return !(a == b);", "eq:AA"},
};

}  // namespace

std::span<const EmitRule> operator_rules() { return rules; }

}  // namespace ferrite::kernel
