// How scalar math is written: with C functions if their edge cases are those of the language.
#include "kernel/emit/rules.hpp"

namespace ferrite::kernel {

namespace {

using namespace fit;

bool unary_real(Types t) { return t.size() == 1 && real_composite(t); }
bool unary_whole(Types t) { return t.size() == 1 && composite(t); }

constexpr EmitRule rules[] = {
    {Builtin::abs, real, "$m{fabs}($0)"},
    {Builtin::abs, unsigned_whole, "$0"},
    {Builtin::abs, whole, "absolute($0)", "return x < 0 ? -x : x;"},
    {Builtin::abs, real_composite, "abs($0)", "each $m{fabs}(x[i])"},
    {Builtin::abs, composite, "abs($0)", "each x[i] < 0 ? -x[i] : x[i]"},
    {Builtin::sign, scalar, "sign($0)", "return x < 0 ? $T(-1) : $T(1);"},
    {Builtin::sign, composite, "sign($0)", "each x[i] < 0 ? $T(-1) : $T(1)"},
    {Builtin::copysign, any, "$m{copysign}($0, $1)"},
    {Builtin::step, any, "step($0)", "return x < 0 ? $T(1) : $T(0);"},
    {Builtin::nonzero, any, "nonzero($0)", "return x == 0 ? $T(0) : $T(1);"},
    {Builtin::min, real, "$m{fmin}($0, $1)"},
    {Builtin::min, narrow, {"min(int($0), int($1))", "std::min($0, $1)"}},
    {Builtin::min, whole, {"min($0, $1)", "std::min($0, $1)"}},
    {Builtin::min, unary_real, "smallest($0)", R"(
$T m = a[0];
for (int i = 1; i < $n; ++i) m = $m{fmin}(m, a[i]);
return m;)"},
    {Builtin::min, unary_whole, "smallest($0)", R"(
$T m = a[0];
for (int i = 1; i < $n; ++i) m = a[i] < m ? a[i] : m;
return m;)"},
    {Builtin::min, real_composite, "min($0, $1)", "each $m{fmin}(a[i], b[i])"},
    {Builtin::min, composite, "min($0, $1)", "each a[i] < b[i] ? a[i] : b[i]"},
    {Builtin::max, real, "$m{fmax}($0, $1)"},
    {Builtin::max, narrow, {"max(int($0), int($1))", "std::max($0, $1)"}},
    {Builtin::max, whole, {"max($0, $1)", "std::max($0, $1)"}},
    {Builtin::max, unary_real, "largest($0)", R"(
$T m = a[0];
for (int i = 1; i < $n; ++i) m = $m{fmax}(m, a[i]);
return m;)"},
    {Builtin::max, unary_whole, "largest($0)", R"(
$T m = a[0];
for (int i = 1; i < $n; ++i) m = a[i] > m ? a[i] : m;
return m;)"},
    {Builtin::max, real_composite, "max($0, $1)", "each $m{fmax}(a[i], b[i])"},
    {Builtin::max, composite, "max($0, $1)", "each a[i] > b[i] ? a[i] : b[i]"},
    {Builtin::clamp, real, "$m{fmin}($m{fmax}($1, $0), $2)"},
    {Builtin::clamp, whole, "clamp($0, $1, $2)", R"(
const $T raised = x < low ? low : x;
return raised < high ? raised : high;)"},
    {Builtin::lerp, scalar, "lerp($0, $1, $2)", "return a * ($T(1) - t) + b * t;"},
    {Builtin::lerp, composite, "lerp($0, $1, $2)", "each a[i] * ($T(1) - t) + b[i] * t", "add:rr mul:rT"},
    {Builtin::smoothstep, any, "smoothstep($0, $1, $2)", R"(
const $T t = $m{fmin}($m{fmax}((x - a) / (b - a), $T(0)), $T(1));
return t * t * ($T(3) - $T(2) * t);)"},
    {Builtin::sqrt, any, "$m{sqrt}($0)"},
    {Builtin::cbrt, any, "$m{cbrt}($0)"},
    {Builtin::exp, any, "$m{exp}($0)"},
    {Builtin::log, any, "$m{log}($0)"},
    {Builtin::log2, any, "$m{log2}($0)"},
    {Builtin::log10, any, "$m{log10}($0)"},
    {Builtin::sin, any, "$m{sin}($0)"},
    {Builtin::cos, any, "$m{cos}($0)"},
    {Builtin::tan, any, "$m{tan}($0)"},
    {Builtin::asin, any, "clamped_asin($0)", "return $m{asin}(x < -1 ? $T(-1) : x > 1 ? $T(1) : x);"},
    {Builtin::acos, any, "clamped_acos($0)", "return $m{acos}(x < -1 ? $T(-1) : x > 1 ? $T(1) : x);"},
    {Builtin::atan, any, "$m{atan}($0)"},
    {Builtin::atan2, any, "$m{atan2}($0, $1)"},
    {Builtin::sinh, any, "$m{sinh}($0)"},
    {Builtin::cosh, any, "$m{cosh}($0)"},
    {Builtin::tanh, any, "$m{tanh}($0)"},
    {Builtin::erf, any, "$m{erf}($0)"},
    {Builtin::erfc, any, "$m{erfc}($0)"},
    {Builtin::degrees, any, "degrees($0)", "return x * $T(57.29577951308232);"},
    {Builtin::radians, any, "radians($0)", "return x * $T(0.017453292519943295);"},
    {Builtin::floor, any, "$m{floor}($0)"},
    {Builtin::ceil, any, "$m{ceil}($0)"},
    {Builtin::trunc, any, "$m{trunc}($0)"},
    {Builtin::round, any, "$m{round}($0)"},
    {Builtin::rint, any, "$m{rint}($0)"},
    {Builtin::frac, any, "frac($0)", "return x - $m{trunc}(x);"},
    {Builtin::isfinite, scalar, {"bool($s{isfinite}($0))", "$s{isfinite}($0)"}},
    {Builtin::isfinite, matrix, "all_finite($0)", R"(
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j)
    if (!$s{isfinite}(x[i][j])) return false;
return true;)"},
    {Builtin::isfinite, composite, "all_finite($0)", R"(
for (int i = 0; i < $n; ++i)
  if (!$s{isfinite}(x[i])) return false;
return true;)"},
    {Builtin::isnan, scalar, {"bool($s{isnan}($0))", "$s{isnan}($0)"}},
    {Builtin::isnan, matrix, "some_nan($0)", R"(
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j)
    if ($s{isnan}(x[i][j])) return true;
return false;)"},
    {Builtin::isnan, composite, "some_nan($0)", R"(
for (int i = 0; i < $n; ++i)
  if ($s{isnan}(x[i])) return true;
return false;)"},
    {Builtin::isinf, scalar, {"bool($s{isinf}($0))", "$s{isinf}($0)"}},
    {Builtin::isinf, matrix, "some_inf($0)", R"(
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j)
    if ($s{isinf}(x[i][j])) return true;
return false;)"},
    {Builtin::isinf, composite, "some_inf($0)", R"(
for (int i = 0; i < $n; ++i)
  if ($s{isinf}(x[i])) return true;
return false;)"},
    {Builtin::bit_count, wide, {"__popcll($U($0))", "__builtin_popcountll($U($0))"}},
    {Builtin::bit_count, any, {"__popc($U($0))", "__builtin_popcount($U($0))"}},
};

}  // namespace

std::span<const EmitRule> math_rules() { return rules; }

}  // namespace ferrite::kernel
