// How vectors and matrices are written: small functions over their components.
#include "kernel/emit/rules.hpp"

namespace ferrite::kernel {

namespace {

using namespace fit;

bool of_size_2(Types t) { return t[0].rows == 2; }
bool of_size_3(Types t) { return t[0].rows == 3; }
bool quaternion(Types t) { return t[0].is_quaternion(); }

constexpr std::string_view sum_of_squares = R"(
$T sum = 0;
for (int i = 0; i < $n; ++i) sum += a[i] * a[i];
return sum;)";

constexpr EmitRule rules[] = {
    {Builtin::dot, any, "dot($0, $1)", R"(
$T sum = 0;
for (int i = 0; i < $n; ++i) sum += a[i] * b[i];
return sum;)"},
    {Builtin::ddot, any, "ddot($0, $1)", R"(
$T sum = 0;
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j) sum += a[i][j] * b[i][j];
return sum;)"},
    {Builtin::cross, any, "cross($0, $1)",
     "return $R{$T(a[1] * b[2] - a[2] * b[1]), $T(a[2] * b[0] - a[0] * b[2]), $T(a[0] * b[1] - a[1] * "
     "b[0])};"},
    {Builtin::length, any, "length($0)", R"(
$T sum = 0;
for (int i = 0; i < $n; ++i) sum += a[i] * a[i];
return $m{sqrt}(sum);)"},
    {Builtin::length_sq, any, "length_sq($0)", sum_of_squares},
    {Builtin::normalize, quaternion, "normalize($0)", R"(
const $T l = length(a);
return l > 0 ? a / l : $R{0, 0, 0, 1};)",
     "length:A div:AT"},
    {Builtin::normalize, any, "normalize($0)", R"(
const $T l = length(a);
return l > 0 ? a / l : $R{};)",
     "length:A div:AT"},
    {Builtin::outer, any, "outer($0, $1)", R"(
$R r;
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j) r[i][j] = a[i] * b[j];
return r;)"},
    {Builtin::skew, any, "skew($0)", "return $R{0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0};"},
    {Builtin::cw_mul, matrix, "cw_mul($0, $1)", "each cw_mul(a[i], b[i])"},
    {Builtin::cw_mul, any, "cw_mul($0, $1)", "each a[i] * b[i]"},
    {Builtin::cw_div, matrix, "cw_div($0, $1)", "each cw_div(a[i], b[i])"},
    {Builtin::cw_div, any, "cw_div($0, $1)", "each a[i] / b[i]"},
    {Builtin::argmin, any, "argmin($0)", R"(
uint32 best = 0;  // a NaN is never the smallest
for (uint32 i = 1; i < $n; ++i)
  if (a[i] < a[best] || (a[best] != a[best] && a[i] == a[i])) best = i;
return best;)"},
    {Builtin::argmax, any, "argmax($0)", R"(
uint32 best = 0;  // a NaN is never the largest
for (uint32 i = 1; i < $n; ++i)
  if (a[i] > a[best] || (a[best] != a[best] && a[i] == a[i])) best = i;
return best;)"},
    {Builtin::norm_l1, any, "norm_l1($0)", R"(
$T sum = 0;
for (int i = 0; i < $n; ++i) sum += $m{fabs}(v[i]);
return sum;)"},
    {Builtin::transpose, any, "transpose($0)", R"(
$R r;
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j) r[i][j] = a[j][i];
return r;)"},
    {Builtin::determinant, of_size_2, "determinant($0)", "return a[0][0] * a[1][1] - a[0][1] * a[1][0];"},
    {Builtin::determinant, of_size_3, "determinant($0)", R"(
return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
       a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
       a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);)"},
    {Builtin::determinant, any, "determinant($0)", R"(
$T sum = 0;  // by pairs of rows
for (int i = 0; i < 4; ++i)
  for (int j = i + 1; j < 4; ++j) {
    const int k = i > 0 ? 0 : j > 1 ? 1 : 2, l = 6 - i - j - k;
    const $T upper = a[0][i] * a[1][j] - a[0][j] * a[1][i];
    const $T lower = a[2][k] * a[3][l] - a[2][l] * a[3][k];
    sum += (i + j) % 2 == 1 ? upper * lower : -upper * lower;
  }
return sum;)"},
    {Builtin::inverse, of_size_2, "inverse($0)", R"(
const $T d = determinant(a);
if (d == 0) return $R{};
return $R{a[1][1], -a[0][1], -a[1][0], a[0][0]} / d;)",
     "determinant:A div:RT"},
    {Builtin::inverse, of_size_3, "inverse($0)", R"(
const $T d = determinant(a);
$R r{};
for (int i = 0; i < 3 && d != 0; ++i)
  for (int j = 0; j < 3; ++j) {
    const int i1 = (i + 1) % 3, i2 = (i + 2) % 3, j1 = (j + 1) % 3, j2 = (j + 2) % 3;
    r[j][i] = (a[i1][j1] * a[i2][j2] - a[i1][j2] * a[i2][j1]) / d;
  }
return r;)",
     "determinant:A"},
    {Builtin::inverse, any, "inverse($0)", R"(
const $T d = determinant(a);
$R r{};
for (int i = 0; i < 4 && d != 0; ++i)
  for (int j = 0; j < 4; ++j) {
    const int i1 = (i + 1) % 4, i2 = (i + 2) % 4, i3 = (i + 3) % 4;
    const int j1 = (j + 1) % 4, j2 = (j + 2) % 4, j3 = (j + 3) % 4;
    const $T minor = a[i1][j1] * (a[i2][j2] * a[i3][j3] - a[i2][j3] * a[i3][j2]) -
                     a[i1][j2] * (a[i2][j1] * a[i3][j3] - a[i2][j3] * a[i3][j1]) +
                     a[i1][j3] * (a[i2][j1] * a[i3][j2] - a[i2][j2] * a[i3][j1]);
    r[j][i] = ((i + j) % 2 == 0 ? minor : -minor) / d;
  }
return r;)",
     "determinant:A"},
    {Builtin::trace, any, "trace($0)", R"(
$T sum = 0;
for (int i = 0; i < $n; ++i) sum += a[i][i];
return sum;)"},
    {Builtin::diag, any, "diag($0)", R"(
$R r{};
for (int i = 0; i < $n; ++i) r[i][i] = v[i];
return r;)"},
    {Builtin::get_diag, any, "get_diag($0)", "each m[i][i]"},
    {Builtin::identity, any, "identity_$R()", R"(
$R r{};
for (int i = 0; i < $n; ++i) r[i][i] = 1;
return r;)"},
    {Builtin::matrix_from_rows, any, "$R{$*}"},
    {Builtin::matrix_from_cols, any, "transpose($R{$*})", "", "transpose:R"},
};

}  // namespace

std::span<const EmitRule> vector_rules() { return rules; }

}  // namespace ferrite::kernel
