// The arithmetic of elements on Cpu (ferrite/ops/formulas.hpp): polynomials that become vector code for f32,
// the standard library for the others.
#pragma once

#include <type_traits>

#include "ferrite/ops/formulas.hpp"
#include "math/fast_math.hpp"

namespace ferrite::cpu {

/// The arithmetic of f32 in the formulas. It has its own versions of some parts because the formulas' own
/// would lose bits in float, or flush results that are in range.
struct FastMath : formulas::Standard<float> {
#define FERRITE_FAST(fn) \
  FERRITE_INLINE float fn(float x) const { return fast::fn(x); }
  FERRITE_FAST(exp)
  FERRITE_FAST(expm1)
  FERRITE_FAST(log)
  FERRITE_FAST(log1p)
  FERRITE_FAST(tanh)
  FERRITE_FAST(sigmoid)
  FERRITE_FAST(erf)
  FERRITE_FAST(erf_slope)
  FERRITE_FAST(gelu_erf)
  FERRITE_FAST(gelu_erf_slope)
#undef FERRITE_FAST
  FERRITE_INLINE float within(float x, float limit) const {
    return fast::unless_nan(x, fast::with_sign_of(x, fast::limited_magnitude(x, limit)));
  }
  FERRITE_INLINE float gated(float x, float u) const { return fast::gated(x, u); }
  FERRITE_INLINE float gate_slope(float u, float slope) const { return fast::gate_slope(u, slope); }
  // Up to fast::trig_limit.
  FERRITE_INLINE float sin(float x) const { return static_cast<float>(fast::sincos(x).sin); }
  FERRITE_INLINE float cos(float x) const { return static_cast<float>(fast::sincos(x).cos); }
  FERRITE_INLINE float tan(float x) const {
    const fast::SinCos t = fast::sincos(x);
    return static_cast<float>(t.sin / t.cos);
  }
};

/// The Math that Cpu uses for elements of T.
template <class T>
using Math = std::conditional_t<std::is_same_v<T, float>, FastMath, formulas::Standard<T>>;

}  // namespace ferrite::cpu
