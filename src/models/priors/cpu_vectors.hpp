// The two loops in which a CPU spends its time, products and Fourier series, in vector registers. Lane by
// lane they do what team.hpp and activations.hpp define, so the bits are those of the plain loops.
#pragma once

#include "backend_cpu/simd/simd.hpp"
#include "models/priors/activations.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ferrite::priors {

using Vector = simd::Vec<float>;
inline constexpr int vector_lanes = static_cast<int>(simd::lanes<float>);

FERRITE_INLINE Vector fused(Vector a, Vector b, Vector c) {
#if defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#elif defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  for (int i = 0; i < vector_lanes; ++i) c[i] = std::fma(a[i], b[i], c[i]);
  return c;
#endif
}
/// c - a b, rounded once.
FERRITE_INLINE Vector fused_minus(Vector a, Vector b, Vector c) {
#if defined(__aarch64__)
  return vfmsq_f32(c, a, b);
#else
  return fused(-a, b, c);
#endif
}
FERRITE_INLINE Vector spread(float x) { return x - Vector{}; }
FERRITE_INLINE Vector load(const float* x) {
  Vector v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
FERRITE_INLINE void store(float* x, Vector v) { std::memcpy(x, &v, sizeof v); }

/// `units` rows of weights times columns, from `row` on: units x 4 vectors of sums.
template <int units>
FERRITE_INLINE void product_block(const float* weights, const float* bias, const float* in, int from,
                                  float* out, int rows) {
  constexpr int width = 4, step = width * vector_lanes;
  int row = 0;
  for (; row + step <= rows; row += step) {
    Vector sums[units][width];
    for (int u = 0; u < units; ++u)
      for (int i = 0; i < width; ++i) sums[u][i] = spread(bias[u]);
    for (int k = 0; k < from; ++k) {
      const float* x = in + static_cast<std::int64_t>(k) * rows + row;
      Vector values[width];
      for (int i = 0; i < width; ++i) values[i] = load(x + i * vector_lanes);
      for (int u = 0; u < units; ++u) {
        const Vector w = spread(weights[u * from + k]);
        for (int i = 0; i < width; ++i) sums[u][i] = fused(w, values[i], sums[u][i]);
      }
    }
    for (int u = 0; u < units; ++u)
      for (int i = 0; i < width; ++i)
        store(out + static_cast<std::int64_t>(u) * rows + row + i * vector_lanes, sums[u][i]);
  }
  for (; row < rows; ++row) {
    for (int u = 0; u < units; ++u) {
      float sum = bias[u];
      for (int k = 0; k < from; ++k)
        sum = std::fma(weights[u * from + k], in[static_cast<std::int64_t>(k) * rows + row], sum);
      out[static_cast<std::int64_t>(u) * rows + row] = sum;
    }
  }
}
inline void vector_product(const float* weights, const float* bias, const float* in, int from, float* out,
                           int to, int rows) {
  const auto column = [&](int unit) { return out + static_cast<std::int64_t>(unit) * rows; };
  int unit = 0;
  for (; unit + 4 <= to; unit += 4)
    product_block<4>(weights + unit * from, bias + unit, in, from, column(unit), rows);
  for (; unit < to; ++unit)
    product_block<1>(weights + unit * from, bias + unit, in, from, column(unit), rows);
}

// Vectors that go through a series together: with even and odd powers, two chains each, which hides their
// latency.
inline constexpr int fourier_width = 2, fourier_step = fourier_width * vector_lanes;

/// Horner's scheme at e^(i angle) = c + i s for the even (0) and the odd (1) powers. A function of its own:
/// inlined, it would lack registers.
[[gnu::noinline]] inline void fourier_powers(const FourierSeries& series, const float* c, const float* s,
                                             float (&re)[2][fourier_step], float (&im)[2][fourier_step]) {
  Vector vc[fourier_width], vs[fourier_width], vre[2][fourier_width] = {}, vim[2][fourier_width] = {};
  for (int i = 0; i < fourier_width; ++i) {
    vc[i] = load(c + i * vector_lanes);
    vs[i] = load(s + i * vector_lanes);
  }
  for (int k = series.terms - 2; k >= 0; k -= 2) {
    for (int parity = 0; parity < 2; ++parity) {
      const Vector a = spread(series.re[k + parity]), b = spread(series.im[k + parity]);
      for (int i = 0; i < fourier_width; ++i) {
        const Vector next = fused_minus(vim[parity][i], vs[i], fused(vre[parity][i], vc[i], a));
        vim[parity][i] = fused(vre[parity][i], vs[i], fused(vim[parity][i], vc[i], b));
        vre[parity][i] = next;
      }
    }
  }
  for (int parity = 0; parity < 2; ++parity) {
    for (int i = 0; i < fourier_width; ++i) {
      store(re[parity] + i * vector_lanes, vre[parity][i]);
      store(im[parity] + i * vector_lanes, vim[parity][i]);
    }
  }
}

/// fourier_value of n values in place.
inline void vector_fourier(const FourierSeries& series, float* x, int n) {
  const float offset = series.offset;
  int begin = 0;
  for (; begin + fourier_step <= n; begin += fourier_step) {
    float c[fourier_step], s[fourier_step], re[2][fourier_step], im[2][fourier_step];
    for (int i = 0; i < fourier_step; ++i) {
      const float angle = 2.0f * fourier_turn * x[begin + i];
      c[i] = cos_turns(angle);
      s[i] = sin_turns(angle);
    }
    fourier_powers(series, c, s, re, im);
    for (int i = 0; i < fourier_step; ++i)
      x[begin + i] = fourier_sum(offset, x[begin + i], re[0][i], im[0][i], re[1][i], im[1][i]);
  }
  for (; begin < n; ++begin) x[begin] = fourier_value(series, x[begin]);
}

}  // namespace ferrite::priors
