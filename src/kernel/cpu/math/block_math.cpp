// Functions of floats. f32, f16 and bf16 use the Cpu backend's vector versions of the frequent ones; the
// rest, and all of f64, is computed lane by lane in f64, as in the interpreter.
#include <cmath>
#include <type_traits>

#include "kernel/cpu/block/lanes.hpp"
#include "math/fast_math.hpp"

namespace ferrite::kernel {

namespace {

using enum Builtin;

FERRITE_INLINE double in_domain(double x) { return x < -1 ? -1 : x > 1 ? 1 : x; }

template <ScalarType s, class F>
FERRITE_INLINE void map(const Instruction& i, Lanes& l, F f) {
  using T = typename Form<s>::Lane;
  if constexpr (std::is_invocable_v<F, T>)
    for_lanes<T, T>(i, l, [=](T a) { return Form<s>::round(f(a)); });
  else
    for_lanes<T, T, T>(i, l, [=](T a, T b) { return Form<s>::round(f(a, b)); });
}

/// sin, cos or tan: the vector version, and again in f64 where the argument is beyond its limit.
template <ScalarType s, class Fast, class Exact>
FERRITE_INLINE void trigonometric(const Instruction& i, Lanes& l, Fast quick, Exact exact) {
  map<s>(i, l, quick);
  const float* x = l.at<float>(i.a);
  float* y = l.at<float>(i.out);
  for (int k = 0; k < l.count; ++k)
    if (!(std::fabs(x[k]) <= fast::trig_limit)) y[k] = Form<s>::round(exact(static_cast<double>(x[k])));
}

template <ScalarType s>
Execute vectorised(Builtin builtin) {
  const auto of = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { map<s>(i, l, F{}); };
  };
  const auto angle = []<class F, class G>(F, G) -> Execute {
    return +[](const Instruction& i, Lanes& l) { trigonometric<s>(i, l, F{}, G{}); };
  };
  // clang-format off
  switch (builtin) {
    case exp: return of([](float x) { return fast::exp(x); });
    case log: return of([](float x) { return fast::log(x); });
    case tanh: return of([](float x) { return fast::tanh(x); });
    case erf: return of([](float x) { return fast::erf(x); });
    case sin: return angle([](float x) { return fast::sincos(x).sin; }, [](double x) { return std::sin(x); });
    case cos: return angle([](float x) { return fast::sincos(x).cos; }, [](double x) { return std::cos(x); });
    case tan:
      return angle([](float x) { const auto t = fast::sincos(x); return t.sin / t.cos; },
                   [](double x) { return std::tan(x); });
    default: return nullptr;
  }
  // clang-format on
}

template <ScalarType s>
Execute in_f64(Builtin builtin) {
  const auto of = []<class F>(F) -> Execute {
    return +[](const Instruction& i, Lanes& l) { map<s>(i, l, F{}); };
  };
  // clang-format off
  switch (builtin) {
    case cbrt: return of([](double x) { return std::cbrt(x); });
    case exp: return of([](double x) { return std::exp(x); });
    case log: return of([](double x) { return std::log(x); });
    case log2: return of([](double x) { return std::log2(x); });
    case log10: return of([](double x) { return std::log10(x); });
    case sin: return of([](double x) { return std::sin(x); });
    case cos: return of([](double x) { return std::cos(x); });
    case tan: return of([](double x) { return std::tan(x); });
    case asin: return of([](double x) { return std::asin(in_domain(x)); });
    case acos: return of([](double x) { return std::acos(in_domain(x)); });
    case atan: return of([](double x) { return std::atan(x); });
    case sinh: return of([](double x) { return std::sinh(x); });
    case cosh: return of([](double x) { return std::cosh(x); });
    case tanh: return of([](double x) { return std::tanh(x); });
    case erf: return of([](double x) { return std::erf(x); });
    case erfc: return of([](double x) { return std::erfc(x); });
    case atan2: return of([](double y, double x) { return std::atan2(y, x); });
    case pow: return of([](double x, double y) { return std::pow(x, y); });
    case mod: return of([](double x, double y) { return std::fmod(x, y); });
    default: return nullptr;
  }
  // clang-format on
}

}  // namespace

Execute math_instruction(Builtin builtin, ScalarType type) {
  return visit_scalar(type, [&]<ScalarType s>() -> Execute {
    if constexpr (is_float(s)) {
      if constexpr (s != ScalarType::f64)
        if (const Execute found = vectorised<s>(builtin)) return found;
      return in_f64<s>(builtin);
    } else {
      return nullptr;
    }
  });
}

}  // namespace ferrite::kernel
