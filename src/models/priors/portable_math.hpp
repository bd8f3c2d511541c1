// Elementary functions that give the same bits on every machine, CPU or GPU: built only from IEEE operations
// (+ - * / sqrt, fma, rint and integer arithmetic), in a fixed order. A synthetic dataset is then a function
// of its seed, whatever computes it, and two backends can be compared without a tolerance.
//
// Files that include this must be compiled with contraction off (-ffp-contract=off, nvcc -fmad=false): fused
// multiply-adds are written where they are intended. The functions of float have no branches, so that loops
// over them become vector code. Errors: float below 6e-7, double below 1e-13, relative or absolute, whichever
// is larger. Angles in turns keep that bound however large they are, because they are reduced exactly; an
// angle x in radians adds 1.2e-7 |x|, and x^y adds 3e-16 |y log x| of its value. No function depends on the
// sign of a NaN, which differs between machines.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "ferrite/core/rng.hpp"

#define FERRITE_PORTABLE FERRITE_HOST_DEVICE inline
// For functions that run a few times per dataset: copies would fill a GPU's instruction cache.
#define FERRITE_PORTABLE_CALL FERRITE_HOST_DEVICE [[gnu::noinline]] inline
// For functions in loops over elements: a call would prevent vector code.
#define FERRITE_PORTABLE_ELEMENT FERRITE_HOST_DEVICE FERRITE_INLINE

namespace ferrite::priors {

FERRITE_PORTABLE_ELEMENT float lesser(float a, float b) { return a < b ? a : b; }
FERRITE_PORTABLE_ELEMENT float greater(float a, float b) { return a > b ? a : b; }
/// `low` if x is NaN. The bounds are numbers, and a bound of zero is +0.
FERRITE_PORTABLE_ELEMENT float clamped(float x, float low, float high) {
#if defined(__CUDA_ARCH__)
  return fminf(fmaxf(x, low), high);  // the same in two instructions instead of four
#else
  return lesser(greater(x, low), high);
#endif
}
FERRITE_PORTABLE_ELEMENT int lesser(int a, int b) { return a < b ? a : b; }
FERRITE_PORTABLE_ELEMENT int greater(int a, int b) { return a > b ? a : b; }
/// One NaN everywhere.
FERRITE_PORTABLE_ELEMENT float missing_value() { return std::bit_cast<float>(0x7fc00000u); }

/// rint of an |x| below 2^22, by two additions: GPUs have few units for rint itself.
FERRITE_PORTABLE_ELEMENT float rounded(float x) { return x + 0x1.8p23f - 0x1.8p23f; }

/// sin(2 pi r) for r in [-1/2, 1/2]. The polynomial is that of sin(2 pi r) / (r (1 - 4 r^2)).
FERRITE_PORTABLE_ELEMENT float sin_of_turn(float r) {
  const float q = r * r;
  float p = 3.0178204566730114f;
  p = std::fma(p, q, -9.515609213884169f);
  p = std::fma(p, q, 16.75946177322486f);
  p = std::fma(p, q, -16.208651863190845f);
  p = std::fma(p, q, 6.283183762944856f);
  return r * std::fma(q, -4.0f, 1.0f) * p;
}
/// sin(2 pi t) and cos(2 pi t).
FERRITE_PORTABLE_ELEMENT float sin_turns(float t) { return sin_of_turn(t - std::rint(t)); }
FERRITE_PORTABLE_ELEMENT float cos_turns(float t) { return sin_of_turn(0.25f - std::fabs(t - std::rint(t))); }
FERRITE_PORTABLE_ELEMENT float portable_sin(float x) { return sin_turns(x * 0.15915494309189535f); }

/// e^x for x limited to [-87, 88], so that the result is finite and normal.
FERRITE_PORTABLE_ELEMENT float portable_exp(float x) {
  x = clamped(x, -87.0f, 88.0f);
  const float shifted = std::fma(x, 1.4426950408889634f, 0x1.8p23f);  // its lowest bits are the power of two
  const float n = shifted - 0x1.8p23f;
  const float r = std::fma(n, -0.6931471805599453f, x);
  float p = 0.008312501013278961f;
  p = std::fma(p, r, 0.041890330612659454f);
  p = std::fma(p, r, 0.16667115688323975f);
  p = std::fma(p, r, 0.499992311000824f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const std::uint32_t scale = (std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000u;
  return p * std::bit_cast<float>(scale);
}

/// log(x) of a positive normal x.
FERRITE_PORTABLE_ELEMENT float portable_log(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x) - 0x3f3504f3u;  // sqrt(1/2)
  const auto n = static_cast<float>(static_cast<std::int32_t>(bits) >> 23);
  const float f = std::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float p = -0.07900886497864028f;
  p = std::fma(p, f, 0.1262188733487758f);
  p = std::fma(p, f, -0.1299852800891737f);
  p = std::fma(p, f, 0.1421455430941684f);
  p = std::fma(p, f, -0.1664126254728134f);
  p = std::fma(p, f, 0.20001043249917613f);
  p = std::fma(p, f, -0.25000306690031393f);
  p = std::fma(p, f, 0.33333330735844874f);
  const float square = f * f;
  const float tail = std::fma(n, -2.12194440e-4f, std::fma(square, -0.5f, p * square * f));
  return std::fma(n, 0.693359375f, f + tail);
}

/// 1 / x for x in [1, 2]: a parabola and two steps of Newton's, which cost less than a division.
FERRITE_PORTABLE_ELEMENT float reciprocal_of_one_to_two(float x) {
  float r = std::fma(std::fma(x, 32.0f / 99, -144.0f / 99), x, 210.0f / 99);
  r = std::fma(r, std::fma(-x, r, 1.0f), r);
  return std::fma(r, std::fma(-x, r, 1.0f), r);
}

FERRITE_PORTABLE_ELEMENT float portable_tanh(float x) {
  const float e = portable_exp(-2.0f * std::fabs(x));
  const float t = (1.0f - e) * reciprocal_of_one_to_two(1.0f + e);
  return x < 0 ? -t : t;
}
/// log(1 + e^x)
FERRITE_PORTABLE_ELEMENT float portable_softplus(float x) {
  return greater(x, 0.0f) + portable_log(1.0f + portable_exp(-std::fabs(x)));
}
FERRITE_PORTABLE_ELEMENT float portable_sigmoid(float x) { return 1.0f / (1.0f + portable_exp(-x)); }

/// The two normals of a pair of words (Box-Muller).
FERRITE_PORTABLE_ELEMENT NormalPair<float> portable_normals(std::uint32_t w0, std::uint32_t w1) {
  const float u = std::fma(static_cast<float>(w0), 0x1p-32f, 0x1p-33f);
  const float t = static_cast<float>(w1 >> 8) * 0x1p-24f;
  const float r = std::sqrt(-2.0f * portable_log(u));
  return {r * cos_turns(t), r * sin_turns(t)};
}

// In double, for the few numbers that decide structure.

/// sin(2 pi r) for r in [-1/4, 1/4].
FERRITE_PORTABLE_CALL double sin_of_turn(double r) {
  const double x = r * 6.283185307179586477, q = x * x;
  double p = 1.0 / 355687428096000.0;
  p = std::fma(p, q, -1.0 / 1307674368000.0);
  p = std::fma(p, q, 1.0 / 6227020800.0);
  p = std::fma(p, q, -1.0 / 39916800.0);
  p = std::fma(p, q, 1.0 / 362880.0);
  p = std::fma(p, q, -1.0 / 5040.0);
  p = std::fma(p, q, 1.0 / 120.0);
  p = std::fma(p, q, -1.0 / 6.0);
  return std::fma(p * q, x, x);
}
FERRITE_PORTABLE double sin_turns(double t) {
  const double r = t - std::rint(t);
  return sin_of_turn(r > 0.25 ? 0.5 - r : r < -0.25 ? -0.5 - r : r);
}
FERRITE_PORTABLE double cos_turns(double t) { return sin_of_turn(0.25 - std::fabs(t - std::rint(t))); }

/// e^x for x limited to [-700, 700].
FERRITE_PORTABLE_CALL double portable_exp(double x) {
  x = x < -700 ? -700 : x > 700 ? 700 : x;
  const double n = std::rint(x * 1.4426950408889634074);
  const double r = std::fma(n, -1.90821492927058770002e-10, std::fma(n, -6.93147180369123816490e-01, x));
  double p = 1.0;
  for (int k = 13; k >= 1; --k) p = std::fma(p, r * (1.0 / k), 1.0);
  const auto scale = static_cast<std::uint64_t>(static_cast<std::int64_t>(n) + 1023) << 52;
  return p * std::bit_cast<double>(scale);
}

/// log(x) of a positive normal x, by atanh of (m - 1) / (m + 1).
FERRITE_PORTABLE_CALL double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x) - 0x3fe6a09e667f3bcdu;  // sqrt(1/2)
  const auto n = static_cast<double>(static_cast<std::int64_t>(bits) >> 52);
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
  const double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 0;
  for (int k = 21; k >= 3; k -= 2) p = std::fma(p, q, 1.0 / k);
  return std::fma(n, 0.69314718055994530942, std::fma(2.0 * s * q, p, 2.0 * s));
}

/// x^y for positive x.
FERRITE_PORTABLE double portable_pow(double x, double y) { return portable_exp(y * portable_log(x)); }

FERRITE_PORTABLE_CALL double portable_normal(std::uint64_t w0, std::uint64_t w1) {
  const double u = static_cast<double>((w0 >> 11) + 1) * 0x1p-53;
  return std::sqrt(-2.0 * portable_log(u)) * cos_turns(static_cast<double>(w1 >> 11) * 0x1p-53);
}

}  // namespace ferrite::priors
