// Scalar math. Functions are computed in f64 and rounded once; edges (min of NaN, acos beyond 1, sign of 0)
// are those of Warp.
#include <numbers>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::string_view group = "Math";
constexpr Effect none = Effect::none;
using std::numbers::pi;

Result extremum(Types t) {
  if (t.size() == 1 && t[0].is_vector()) return Type::of(t[0].scalar);
  return numbers_or_vectors<2>(t);
}
Result lerps(Types t) {
  const bool fits = t.size() == 3 && t[0] == t[1] && (t[0].is_float() || is_real_composite(t[0])) &&
                    t[2] == Type::of(t[0].scalar);
  return fits ? Result(t[0]) : std::nullopt;
}
Result finite(Types t) {
  return t.size() == 1 && (t[0].is_float() || is_real_composite(t[0])) ? Result(bool_type) : std::nullopt;
}
Result counts(Types t) { return t.size() == 1 && t[0].is_int() ? Result(int_type) : std::nullopt; }

/// Floats by `real`, integers (signed or unsigned) by `integer`, component by component.
template <auto real, auto integer>
void each_number(BuiltinCall& c) {
  for (int i = 0; i < c.type.components(); ++i) {
    const int at = c.type_of(0).is_scalar() ? 0 : i;
    if (c.floating())
      c.store(i, real(c.real(0, at)));
    else
      c.store_integer(i, static_cast<std::uint64_t>(integer(c.integer(0, at), is_unsigned(c.type.scalar))));
  }
}
constexpr auto abs_real = [](double x) { return std::fabs(x); };
constexpr auto abs_integer = [](std::int64_t x, bool u) {
  return x < 0 && !u ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x)) : x;
};
constexpr auto sign_real = [](double x) { return x < 0 ? -1.0 : 1.0; };
constexpr auto sign_integer = [](std::int64_t x, bool u) { return std::int64_t{x < 0 && !u ? -1 : 1}; };
constexpr auto step_real = [](double x) { return x < 0 ? 1.0 : 0.0; };
constexpr auto step_integer = [](std::int64_t x, bool u) { return std::int64_t{x < 0 && !u}; };
constexpr auto nonzero_real = [](double x) { return x == 0 ? 0.0 : 1.0; };
constexpr auto nonzero_integer = [](std::int64_t x, bool) { return std::int64_t{x != 0}; };

/// The smaller or larger of two; a number is preferred to NaN. Of equal ones, which may be zeros of both
/// signs, the second is the smaller and the first the larger.
template <bool smaller>
Number pick(ScalarType s, Number a, Number b) {
  if (is_float(s)) return std::isnan(a.real) || (!std::isnan(b.real) && (a.real < b.real) != smaller) ? b : a;
  const bool less = s == ScalarType::u64
                        ? static_cast<std::uint64_t>(a.integer) < static_cast<std::uint64_t>(b.integer)
                        : a.integer < b.integer;
  return less == smaller ? a : b;
}
template <bool smaller>
void extremum_of(BuiltinCall& c) {
  const ScalarType s = c.type.scalar;
  if (c.count() == 1) {
    Number best = c.values[0][0];
    for (int i = 1; i < c.type_of(0).rows; ++i) best = pick<smaller>(s, best, c.values[0][i]);
    c.out[0] = best;
    return;
  }
  for (int i = 0; i < c.type.components(); ++i) c.out[i] = pick<smaller>(s, c.values[0][i], c.values[1][i]);
}
void clamp(BuiltinCall& c) {
  const ScalarType s = c.type.scalar;
  c.out[0] = pick<true>(s, pick<false>(s, c.values[1][0], c.values[0][0]), c.values[2][0]);
}
void lerp(BuiltinCall& c) {
  const double t = c.real(2);
  for (int i = 0; i < c.type.components(); ++i) c.store(i, c.real(0, i) * (1 - t) + c.real(1, i) * t);
}
constexpr auto smoothstep = [](double a, double b, double x) {
  const double t = std::fmin(std::fmax((x - a) / (b - a), 0.0), 1.0);
  return t * t * (3 - 2 * t);
};

/// `any`: true if one component is; else true if all are.
template <auto test, bool any>
void classify(BuiltinCall& c) {
  bool found = !any;
  for (int i = 0; i < c.type_of(0).components(); ++i) {
    const bool is = test(c.real(0, i));
    found = any ? found || is : found && is;
  }
  c.out[0].integer = found;
}
void bit_count(BuiltinCall& c) {
  const int bits = bits_of(c.type_of(0).scalar);
  const auto mask = ~std::uint64_t{0} >> (64 - bits);
  c.out[0].integer = std::popcount(static_cast<std::uint64_t>(c.integer(0)) & mask);
}

constexpr double in_domain(double x) { return x < -1 ? -1 : x > 1 ? 1 : x; }  // of acos and asin

template <auto f>
constexpr BuiltinInfo unary(Builtin id, std::string_view name, std::string_view signature,
                            std::string_view doc) {
  return {id, name, "", group, signature, doc, none, floats<1>, each_real<f>};
}

constexpr BuiltinInfo rows[] = {
    {Builtin::abs, "abs", "", group, "abs(x: Any) -> Any", "Absolute value, component by component.", none,
     numbers_or_vectors<1>, each_number<abs_real, abs_integer>},
    {Builtin::sign, "sign", "", group, "sign(x: Any) -> Any", "-1 if x < 0, else 1 (of 0 too).", none,
     numbers_or_vectors<1>, each_number<sign_real, sign_integer>},
    {Builtin::copysign, "copysign", "", group, "copysign(x: Float, y: Float) -> Float",
     "x with the sign of y.", none, floats<2>,
     each_real<[](double x, double y) { return std::copysign(x, y); }>},
    {Builtin::step, "step", "", group, "step(x: Scalar) -> Scalar", "1 if x < 0, else 0.", none, numbers<1>,
     each_number<step_real, step_integer>},
    {Builtin::nonzero, "nonzero", "", group, "nonzero(x: Scalar) -> Scalar", "0 if x is 0, else 1.", none,
     numbers<1>, each_number<nonzero_real, nonzero_integer>},
    {Builtin::min, "min", "", group, "min(a: Any, b: Any) -> Any",
     "The smaller, component by component; of one vector its smallest component. NaN loses.", none, extremum,
     extremum_of<true>},
    {Builtin::max, "max", "", group, "max(a: Any, b: Any) -> Any",
     "The larger, component by component; of one vector its largest component. NaN loses.", none, extremum,
     extremum_of<false>},
    {Builtin::clamp, "clamp", "", group, "clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar",
     "min(max(low, x), high).", none, numbers<3>, clamp},
    {Builtin::lerp, "lerp", "", group, "lerp(a: Any, b: Any, t: Float) -> Any", "a * (1 - t) + b * t.", none,
     lerps, lerp},
    {Builtin::smoothstep, "smoothstep", "", group, "smoothstep(a: Float, b: Float, x: Float) -> Float",
     "t * t * (3 - 2 t) with t = (x - a) / (b - a), clamped to [0, 1].", none, floats<3>,
     each_real<smoothstep>},
    unary<[](double x) { return std::sqrt(x); }>(Builtin::sqrt, "sqrt", "sqrt(x: Float) -> Float",
                                                 "Square root."),
    unary<[](double x) { return std::cbrt(x); }>(Builtin::cbrt, "cbrt", "cbrt(x: Float) -> Float",
                                                 "Cube root."),
    unary<[](double x) { return std::exp(x); }>(Builtin::exp, "exp", "exp(x: Float) -> Float",
                                                "e to the power of x."),
    unary<[](double x) { return std::log(x); }>(Builtin::log, "log", "log(x: Float) -> Float",
                                                "Natural logarithm."),
    unary<[](double x) { return std::log2(x); }>(Builtin::log2, "log2", "log2(x: Float) -> Float",
                                                 "Logarithm to base 2."),
    unary<[](double x) { return std::log10(x); }>(Builtin::log10, "log10", "log10(x: Float) -> Float",
                                                  "Logarithm to base 10."),
    unary<[](double x) { return std::sin(x); }>(Builtin::sin, "sin", "sin(x: Float) -> Float",
                                                "Sine of radians."),
    unary<[](double x) { return std::cos(x); }>(Builtin::cos, "cos", "cos(x: Float) -> Float",
                                                "Cosine of radians."),
    unary<[](double x) { return std::tan(x); }>(Builtin::tan, "tan", "tan(x: Float) -> Float",
                                                "Tangent of radians."),
    unary<[](double x) { return std::asin(in_domain(x)); }>(Builtin::asin, "asin", "asin(x: Float) -> Float",
                                                            "Arc sine of x clamped to [-1, 1]."),
    unary<[](double x) { return std::acos(in_domain(x)); }>(Builtin::acos, "acos", "acos(x: Float) -> Float",
                                                            "Arc cosine of x clamped to [-1, 1]."),
    unary<[](double x) { return std::atan(x); }>(Builtin::atan, "atan", "atan(x: Float) -> Float",
                                                 "Arc tangent."),
    {Builtin::atan2, "atan2", "", group, "atan2(y: Float, x: Float) -> Float",
     "The angle of the point (x, y).", none, floats<2>,
     each_real<[](double y, double x) { return std::atan2(y, x); }>},
    unary<[](double x) { return std::sinh(x); }>(Builtin::sinh, "sinh", "sinh(x: Float) -> Float",
                                                 "Hyperbolic sine."),
    unary<[](double x) { return std::cosh(x); }>(Builtin::cosh, "cosh", "cosh(x: Float) -> Float",
                                                 "Hyperbolic cosine."),
    unary<[](double x) { return std::tanh(x); }>(Builtin::tanh, "tanh", "tanh(x: Float) -> Float",
                                                 "Hyperbolic tangent."),
    unary<[](double x) { return std::erf(x); }>(Builtin::erf, "erf", "erf(x: Float) -> Float",
                                                "Error function."),
    unary<[](double x) { return std::erfc(x); }>(Builtin::erfc, "erfc", "erfc(x: Float) -> Float",
                                                 "1 - erf(x)."),
    unary<[](double x) { return x * (180 / pi); }>(Builtin::degrees, "degrees", "degrees(x: Float) -> Float",
                                                   "Radians as degrees."),
    unary<[](double x) { return x * (pi / 180); }>(Builtin::radians, "radians", "radians(x: Float) -> Float",
                                                   "Degrees as radians."),
    unary<[](double x) { return std::floor(x); }>(Builtin::floor, "floor", "floor(x: Float) -> Float",
                                                  "The largest whole number that is not above x."),
    unary<[](double x) { return std::ceil(x); }>(Builtin::ceil, "ceil", "ceil(x: Float) -> Float",
                                                 "The smallest whole number that is not below x."),
    unary<[](double x) { return std::trunc(x); }>(Builtin::trunc, "trunc", "trunc(x: Float) -> Float",
                                                  "x without its fraction."),
    unary<[](double x) { return std::round(x); }>(Builtin::round, "round", "round(x: Float) -> Float",
                                                  "The nearest whole number; halves go away from zero."),
    unary<[](double x) { return std::nearbyint(x); }>(Builtin::rint, "rint", "rint(x: Float) -> Float",
                                                      "The nearest whole number; halves go to the even one."),
    unary<[](double x) { return x - std::trunc(x); }>(Builtin::frac, "frac", "frac(x: Float) -> Float",
                                                      "x - trunc(x)."),
    {Builtin::isfinite, "isfinite", "", group, "isfinite(x: Any) -> Bool",
     "Whether all components are finite.", none, finite,
     classify<[](double x) { return std::isfinite(x); }, false>},
    {Builtin::isnan, "isnan", "", group, "isnan(x: Any) -> Bool", "Whether a component is NaN.", none, finite,
     classify<[](double x) { return std::isnan(x); }, true>},
    {Builtin::isinf, "isinf", "", group, "isinf(x: Any) -> Bool", "Whether a component is infinite.", none,
     finite, classify<[](double x) { return std::isinf(x); }, true>},
    {Builtin::bit_count, "bit_count", "", group, "bit_count(x: Int) -> int", "How many bits are 1.", none,
     counts, bit_count},
};

}  // namespace

std::span<const BuiltinInfo> math_builtins() { return rows; }

}  // namespace ferrite::kernel
