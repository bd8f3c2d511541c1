// Elementary functions of f32 that compilers turn into vector code: no branches, no tables, no calls, so a
// plain loop over them vectorises on every instruction set. Eigen 3.4 is not used because its packet exp
// clamps at +-88.7 (exp(-inf) is not 0), its sqrt is approximate on x86, and the vector and scalar parts of
// one loop give different bits.
//
// Errors are below 2 ulp unless a function says otherwise; NaN and infinities follow IEEE. Where float
// arithmetic would lose bits (erf, sin), the middle of the computation is in double. Polynomials are minimax
// fits. Vectorising needs -fno-math-errno and -fno-trapping-math, which change no result.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "ferrite/core/dtype.hpp"

namespace ferrite::fast {

template <class T, std::size_t N, std::size_t... i>
FERRITE_INLINE T polynomial(T x, const T (&c)[N], std::index_sequence<i...>) {
  if constexpr (N == 1) {
    return c[0];
  } else {
    const T pairs[] = {(2 * i + 1 < N ? c[2 * i] + c[std::min(2 * i + 1, N - 1)] * x : c[2 * i])...};
    return polynomial(x * x, pairs, std::make_index_sequence<(sizeof...(i) + 1) / 2>{});
  }
}
/// c[0] + c[1] x + c[2] x^2 + ..., pairwise (Estrin): Horner's chain would leave the pipelines waiting.
template <class T, std::size_t N>
FERRITE_INLINE T polynomial(T x, const T (&c)[N]) {
  return polynomial(x, c, std::make_index_sequence<(N + 1) / 2>{});
}

// Comparisons are made on bits where this frees the compiler from the rules for NaN: without a branch, those
// would cost more than the polynomials.
inline constexpr std::uint32_t sign_bit = 0x80000000u, infinity_bits = 0x7f800000u;
FERRITE_INLINE std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
FERRITE_INLINE float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
FERRITE_INLINE bool is_negative(float x) { return (bits_of(x) & sign_bit) != 0; }
FERRITE_INLINE std::uint32_t magnitude_bits(float x) { return bits_of(x) & ~sign_bit; }
/// |x|, at most `limit`; also for NaN.
FERRITE_INLINE float limited_magnitude(float x, float limit) {
  return from_bits(std::min(magnitude_bits(x), bits_of(limit)));
}
/// y, unless x is NaN.
FERRITE_INLINE float unless_nan(float x, float y) { return magnitude_bits(x) > infinity_bits ? x : y; }
FERRITE_INLINE float with_sign_of(float x, float y) {
  return from_bits(bits_of(y) | (bits_of(x) & sign_bit));
}

/// e^x = 2^n (1 + fraction), |x| <= 104.
struct ExpParts {
  float fraction;
  std::int32_t n;
};
FERRITE_INLINE ExpParts exp_parts(float x) {
  constexpr float shifter = 0x1.8p23f;  // adding it rounds to an integer, found in the lowest bits
  const float shifted = x * 1.44269504f + shifter;
  const float n = shifted - shifter;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  const float tail =
      polynomial(r, {0.500000007f, 0.1666653284f, 0.04166625043f, 0.008367922974f, 0.0013948769f});
  return {r + r * r * tail, static_cast<std::int32_t>(bits_of(shifted) - bits_of(shifter))};
}
/// 2^n for n in [-126, 127]; 0 for n = -127.
FERRITE_INLINE float power_of_two(std::int32_t n) {
  return from_bits(static_cast<std::uint32_t>(n + 127) << 23);
}

FERRITE_INLINE float exp(float x) {
  const ExpParts e = exp_parts(with_sign_of(x, limited_magnitude(x, 104.0f)));
  // In two steps, because 2^n itself may be out of range if the result is denormal.
  const std::int32_t half = e.n >> 1;
  return unless_nan(x, (1.0f + e.fraction) * power_of_two(half) * power_of_two(e.n - half));
}

/// |x| <= 89
FERRITE_INLINE float expm1_limited(float x) {
  const ExpParts e = exp_parts(x);
  // 2^n f + (2^n - 1), with a factor of two apart for n = 128.
  const float scale = power_of_two(std::max(e.n - 1, -127));
  const float y = (scale * e.fraction + (scale - 0.5f)) * 2.0f;
  return e.n == 0 ? e.fraction : y;
}
FERRITE_INLINE float expm1(float x) {
  return unless_nan(x, with_sign_of(x, expm1_limited(with_sign_of(x, limited_magnitude(x, 89.0f)))));
}

FERRITE_INLINE float log(float x) {
  constexpr std::uint32_t least_normal = 0x00800000u, sqrt_half = 0x3f3504f3u;
  const std::uint32_t given = bits_of(x);
  const bool denormal = given < least_normal;
  const std::uint32_t u = denormal ? bits_of(x * 0x1p23f) : given;
  // The exponent that leaves the significand in [sqrt(1/2), sqrt(2)).
  const std::uint32_t above = u - sqrt_half;
  const std::int32_t exponent = (static_cast<std::int32_t>(above) >> 23) - (denormal ? 23 : 0);
  const auto e = static_cast<float>(exponent);
  const float f = from_bits((above & 0x007fffffu) + sqrt_half) - 1.0f;
  const float tail = polynomial(f, {0.3333331045f, -0.2499998657f, 0.2000222628f, -0.16669252f, 0.1421866475f,
                                    -0.1238433226f, 0.1187291591f, -0.1178987895f, 0.06915580812f});
  const float y = e * 0.693359375f + (f + (f * f * (f * tail - 0.5f) + e * -2.12194440e-4f));
  const std::uint32_t special = magnitude_bits(x) == 0   ? sign_bit | infinity_bits
                                : given == infinity_bits ? infinity_bits
                                                         : 0x7fc00000u;
  return given - 1u < infinity_bits - 1u ? y : from_bits(special);
}

FERRITE_INLINE float log1p(float x) {
  const float u = 1.0f + x;
  const float lost = (x - (u - 1.0f)) / u;  // what rounding took from u, to first order
  return with_sign_of(x, log(u) + (magnitude_bits(u) - 1u < infinity_bits - 1u ? lost : 0.0f));
}

/// e^-|x| 2^lift, 0 where that would be denormal (|x| > 87.3 + 0.69 lift); also for NaN. Cheaper than
/// exp(-|x|), because 2^n is in range.
template <int lift = 0>
FERRITE_INLINE float exp_of_negative(float x) {
  // leaves n + 127 + lift in the lowest bits, where 2^(n + lift) has its exponent
  constexpr float shifter = 0x1.8p23f + 127.0f + lift;
  const float a = limited_magnitude(x, 88.0f + 0.69f * lift);
  const float shifted = shifter - a * 1.44269504f;
  const float n = shifted - shifter;
  const float r = (a + n * 0.693359375f) + n * -2.12194440e-4f;
  const float tail =
      polynomial(r, {0.500000007f, -0.1666653284f, 0.04166625043f, -0.008367922974f, 0.0013948769f});
  const float power = from_bits(bits_of(shifted) << 23);
  return power * (r * r * tail - r) + power;
}

/// Below 1.5 ulp: 1 - y^2, the derivative, multiplies the error of y. 1 - 2 e / (1 + e) with e = e^(-2|x|);
/// near 0, where that cancels, x + x^3 P(x^2).
FERRITE_INLINE float tanh(float x) {
  const float a = limited_magnitude(x, 9.02f);
  const float z = a * a;
  const float near =
      polynomial(z, {-0.3333329943f, 0.1333196222f, -0.05378697598f, 0.02080623111f, -0.005906724401f});
  const float e = exp_of_negative(2.0f * a);
  const float y = a < 0.6f ? a + a * z * near : 1.0f - 2.0f * e / (1.0f + e);
  return unless_nan(x, with_sign_of(x, y));
}

/// sigmoid(u) = over / under * scale, for u that is not NaN. Multiply by a factor before the scale: a product
/// with a number above 1 can be in range although sigmoid(u) alone is not.
struct Gate {
  float over, under, scale;
};
FERRITE_INLINE Gate gate(float u) {
  const float lifted = exp_of_negative<32>(u);
  const bool negative = is_negative(u);
  return {negative ? lifted : 1.0f, 1.0f + lifted * 0x1p-32f, negative ? 0x1p-32f : 1.0f};
}

/// Below 3 ulp.
FERRITE_INLINE float sigmoid(float x) {
  const Gate g = gate(x);
  return unless_nan(x, g.over / g.under * g.scale);
}

/// x sigmoid(u), u NaN only where x is. The rounding of u costs up to |u| ulp.
FERRITE_INLINE float gated(float x, float u) {
  const Gate g = gate(u);
  return x * g.over / g.under * g.scale;
}

/// sigmoid(u) (1 + slope (1 - sigmoid(u))), u NaN only where slope is.
FERRITE_INLINE float gate_slope(float u, float slope) {
  const Gate g = gate(u);
  const float part = g.over / g.under;
  return (part + part * (slope * (1.0f - part * g.scale))) * g.scale;
}
/// e^x for double x in [-700, 0], relative error 1e-10.
FERRITE_INLINE double exp_wide(double x) {
  constexpr double shifter = 0x1.8p52;
  const double shifted = x * 1.4426950408889634 + shifter;
  const double n = shifted - shifter;
  const double r = (x - n * 0.69314718055994529) - n * 2.3190468138462996e-17;
  const double tail = polynomial(r, {0.50000000778555908, 0.16666666860603441, 0.041666270102189247,
                                     0.0083332643765560734, 0.0013946061826946365, 0.00019918373357646958});
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(shifter);
  return (1.0 + (r + r * r * tail)) * std::bit_cast<double>((bits + 1023u) << 52);
}

/// erfc(z) for z in [0, 26], relative error 1e-9.
FERRITE_INLINE double erfc_wide(double z) {
  const double u = 1.0 / (1.0 + 0.4 * z);
  return exp_wide(-z * z) * u *
         polynomial(u,
                    {0.22567238601654745, 0.22577630228481881, 0.20632049675947708, 0.18140743924380104,
                     0.072588132683193029, 0.23378019052666445, -0.37851323515624905, 0.64077017501227778,
                     -0.74947924526107233, 0.47765844325197016, -0.15744288880556416, 0.021461803313039274});
}

FERRITE_INLINE float erf(float x) {
  const double z = limited_magnitude(x, 4.0f);
  const double near =
      z * polynomial(z * z, {1.1283791670580233, -0.37612638434648125, 0.11283781974058202,
                             -0.026865400039998161, 0.0052209454285047645, -0.00084828288030371598,
                             0.00011256947717903102, -9.6415157890178666e-6});
  const double y = z < 1.0 ? near : 1.0 - erfc_wide(z);
  return unless_nan(x, with_sign_of(x, static_cast<float>(y)));
}

/// x Phi(x)
FERRITE_INLINE float gelu_erf(float x) {
  const double z = limited_magnitude(x, 15.0f) * 0.70710678118654752;
  const double tail = z < 10.6 ? 0.5 * erfc_wide(z) : 0.0;  // Phi(-|x|)
  return static_cast<float>(x * (x < 0.0f ? tail : 1.0 - tail));
}

/// 2 / sqrt(pi) e^(-x^2)
FERRITE_INLINE float erf_slope(float x) {
  const double z = limited_magnitude(x, 15.0f);
  return unless_nan(x, static_cast<float>(1.1283791670955126 * exp_wide(-z * z)));
}

/// Phi(x) + x phi(x)
FERRITE_INLINE float gelu_erf_slope(float x) {
  const double z = limited_magnitude(x, 15.0f);
  const double tail = 0.5 * erfc_wide(z * 0.70710678118654752);
  const double slope = z * 0.3989422804014327 * exp_wide(-0.5 * z * z);
  return unless_nan(x, static_cast<float>(is_negative(x) ? tail - slope : 1.0 - tail + slope));
}

/// sin and cos of x, |x| <= trig_limit; beyond, the reduction runs out of bits.
inline constexpr float trig_limit = 0x1p26f;
struct SinCos {
  double sin, cos;
};
FERRITE_INLINE SinCos sincos(float x) {
  constexpr double shifter = 0x1.8p52;
  const double shifted = x * 0.63661977236758134 + shifter;
  const double n = shifted - shifter;
  // pi/2 in two parts, the first of 26 bits: its product with n is exact.
  const double r = (x - n * 1.5707963109016418) - n * 1.5893254773528197e-8;
  const double z = r * r;
  const double s = r * (1.0 + z * polynomial(z, {-0.16666666663628974, 0.0083333317869710731,
                                                 -0.00019840039615371033, 2.7243860098121922e-6}));
  const double c = 1.0 - 0.5 * z +
                   z * z *
                       polynomial(z, {0.041666666664131604, -0.0013888887598581369, 2.4800560960983664e-5,
                                      -2.729588708632606e-7});
  const std::uint64_t quadrant = std::bit_cast<std::uint64_t>(shifted);
  const bool swap = (quadrant & 1u) != 0;
  const double sine = swap ? c : s;
  const double cosine = swap ? s : c;
  return {(quadrant & 2u) != 0 ? -sine : sine, ((quadrant + 1u) & 2u) != 0 ? -cosine : cosine};
}

}  // namespace ferrite::fast
