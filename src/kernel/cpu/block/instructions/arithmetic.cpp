// Arithmetic of floats, and comparisons and choices of all scalars. One operation in f32 rounds like the
// interpreter's f64 operation followed by a rounding; operations of several steps are computed in f64 here
// too.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "kernel/cpu/block/lanes.hpp"

namespace ferrite::kernel {

namespace {

using enum Builtin;
using std::numbers::pi;

template <class T>
FERRITE_INLINE T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a != a ? b : b != b ? a : a < b ? a : b;
  return a < b ? a : b;
}
template <class T>
FERRITE_INLINE T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a != a ? b : b != b ? a : a < b ? b : a;
  return a < b ? b : a;
}

template <ScalarType s, class F>
FERRITE_INLINE void map(const Instruction& i, Lanes& l, F f) {
  using T = typename Form<s>::Lane;
  if constexpr (std::is_invocable_v<F, T>)
    for_lanes<T, T>(i, l, [=](T a) { return Form<s>::round(f(a)); });
  else if constexpr (std::is_invocable_v<F, T, T>)
    for_lanes<T, T, T>(i, l, [=](T a, T b) { return Form<s>::round(f(a, b)); });
  else
    for_lanes<T, T, T, T>(i, l, [=](T a, T b, T c) { return Form<s>::round(f(a, b, c)); });
}
template <ScalarType s, class F>
FERRITE_INLINE void compare(const Instruction& i, Lanes& l, F f) {
  using T = typename Form<s>::Lane;
  if constexpr (std::is_invocable_v<F, T>)
    for_lanes<std::uint8_t, T>(i, l, [=](T a) { return static_cast<std::uint8_t>(f(a)); });
  else
    for_lanes<std::uint8_t, T, T>(i, l, [=](T a, T b) { return static_cast<std::uint8_t>(f(a, b)); });
}

template <ScalarType s>
Execute comparison(Builtin builtin) {
  using T = typename Form<s>::Lane;
  const auto of = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { compare<s>(i, l, F{}); };
  };
  switch (builtin) {
    case lt:
      return of([](T a, T b) { return a < b; });
    case le:
      return of([](T a, T b) { return a <= b; });
    case gt:
      return of([](T a, T b) { return a > b; });
    case ge:
      return of([](T a, T b) { return a >= b; });
    case eq:
      return of([](T a, T b) { return a == b; });
    case ne:
      return of([](T a, T b) { return a != b; });
    default:
      return nullptr;
  }
}

template <ScalarType s>
Execute choice(Builtin builtin) {
  using T = typename Form<s>::Lane;
  const auto of = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { map<s>(i, l, F{}); };
  };
  switch (builtin) {
    case min:
      return of([](T a, T b) { return smaller(a, b); });
    case max:
      return of([](T a, T b) { return larger(a, b); });
    case clamp:
      return of([](T x, T low, T high) { return smaller(larger(low, x), high); });
    case pos:
      return of([](T a) { return a; });
    case nonzero:
      return of([](T a) { return static_cast<T>(a != 0); });
    default:
      return nullptr;
  }
}

template <ScalarType s>
Execute floating(Builtin builtin) {
  using T = typename Form<s>::Lane;
  const auto of = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { map<s>(i, l, F{}); };
  };
  const auto test = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { compare<s>(i, l, F{}); };
  };
  // clang-format off
  switch (builtin) {
    case neg: return of([](T a) { return -a; });
    case add: return of([](T a, T b) { return a + b; });
    case sub: return of([](T a, T b) { return a - b; });
    case mul: case cw_mul: return of([](T a, T b) { return a * b; });
    case div: case cw_div: return of([](T a, T b) { return a / b; });
    case floordiv: return of([](T a, T b) { return std::floor(Form<s>::round(a / b)); });
    case abs: return of([](T a) { return std::fabs(a); });
    case sign: return of([](T a) { return a < 0 ? T{-1} : T{1}; });
    case step: return of([](T a) { return a < 0 ? T{1} : T{0}; });
    case copysign: return of([](T a, T b) { return std::copysign(a, b); });
    case lerp: return of([](T a, T b, T x) { const double t = x; return a * (1 - t) + b * t; });
    case smoothstep:
      return of([](T a, T b, T x) {
        const double low = a, t = smaller(larger((x - low) / (b - low), 0.0), 1.0);
        return t * t * (3 - 2 * t);
      });
    case sqrt: return of([](T a) { return std::sqrt(a); });
    case degrees: return of([](T a) { return a * (180 / pi); });
    case radians: return of([](T a) { return a * (pi / 180); });
    case floor: return of([](T a) { return std::floor(a); });
    case ceil: return of([](T a) { return std::ceil(a); });
    case trunc: return of([](T a) { return std::trunc(a); });
    case round: return of([](T a) { return std::round(a); });
    case rint: return of([](T a) { return std::nearbyint(a); });
    case frac: return of([](T a) { return a - std::trunc(a); });
    case isfinite: return test([](T a) { return std::fabs(a) <= std::numeric_limits<T>::max(); });
    case isinf: return test([](T a) { return std::fabs(a) > std::numeric_limits<T>::max(); });
    case isnan: return test([](T a) { return a != a; });
    default: return nullptr;
  }
  // clang-format on
}

}  // namespace

Execute arithmetic_instruction(Builtin builtin, ScalarType type) {
  return visit_scalar(type, [&]<ScalarType s>() -> Execute {
    if (const Execute found = comparison<s>(builtin)) return found;
    if constexpr (s == ScalarType::bool_) {
      if (builtin != not_) return nullptr;
      return +[](const Instruction& i, Lanes& l) { compare<s>(i, l, [](std::uint8_t a) { return a == 0; }); };
    } else {
      if (const Execute found = choice<s>(builtin)) return found;
      if constexpr (is_float(s))
        return floating<s>(builtin);
      else
        return nullptr;
    }
  });
}

}  // namespace ferrite::kernel
