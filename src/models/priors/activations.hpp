// The random functions of TabICL's networks: eighteen plain ones and a random Fourier series, each after
// standardising its input over the rows and a random scale and shift.
#pragma once

#include <type_traits>
#include <utility>

#include "models/priors/laws.hpp"

namespace ferrite::priors {

enum class Activation : std::uint8_t {
  tanh,
  leaky_relu,
  elu,
  identity,
  selu,
  silu,
  relu,
  softplus,
  relu6,
  hardtanh,
  sign,
  gauss,
  exp,
  sqrt_abs,
  inside_one,
  sin,
  square,
  abs,
  fourier
};
inline constexpr int plain_activations = 18;
inline constexpr const char* activation_names[] = {
    "tanh", "leaky_relu", "elu", "identity", "selu",       "silu", "relu",   "softplus", "relu6",  "hardtanh",
    "sign", "gauss",      "exp", "sqrt_abs", "inside_one", "sin",  "square", "abs",      "fourier"};

FERRITE_PORTABLE_ELEMENT float activate(Activation kind, float x) {
  switch (kind) {
    case Activation::tanh:
      return portable_tanh(x);
    case Activation::leaky_relu:
      return x > 0 ? x : 0.01f * x;
    case Activation::elu:
      return x > 0 ? x : portable_exp(x) - 1.0f;
    case Activation::selu:
      return 1.0507010f * (x > 0 ? x : 1.6732632f * (portable_exp(x) - 1.0f));
    case Activation::silu:
      return x * portable_sigmoid(x);
    case Activation::relu:
      return greater(x, 0.0f);
    case Activation::softplus:
      return portable_softplus(x);
    case Activation::relu6:
      return clamped(x, 0.0f, 6.0f);
    case Activation::hardtanh:
      return clamped(x, -1.0f, 1.0f);
    case Activation::sign:
      return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
    case Activation::gauss:
      return portable_exp(-x * x);
    case Activation::exp:
      return portable_exp(x);
    case Activation::sqrt_abs:
      return std::sqrt(std::fabs(x));
    case Activation::inside_one:
      return std::fabs(x) <= 1.0f ? 1.0f : 0.0f;
    case Activation::sin:
      return portable_sin(x);
    case Activation::square:
      return x * x;
    case Activation::abs:
      return std::fabs(x);
    default:
      return x;
  }
}

/// A function shared by all units of a layer: activation(scale * (z + shift)).
struct ActivationPlan {
  Activation kind;
  float scale, shift;
  float decay;  // of a Fourier series: amplitude f^-decay
};

// TabICL's list has the plain functions, ten Fourier entries, and as many "any of this list" again.
inline constexpr int fourier_entries = 10, first_any = plain_activations + fourier_entries,
                     activation_entries = 2 * first_any;

FERRITE_PORTABLE_CALL ActivationPlan draw_activation(Draws& draws, const double* weights) {
  int entry = draws.weighted(weights, activation_entries);
  while (entry >= first_any) entry = draws.integer(0, activation_entries - 1);
  ActivationPlan plan;
  plan.kind = entry < plain_activations ? static_cast<Activation>(entry) : Activation::fourier;
  plan.scale = static_cast<float>(portable_exp(2 * draws.normal()));
  plan.shift = static_cast<float>(draws.normal());
  plan.decay = static_cast<float>(draws.log_uniform(0.7, 3));
  return plan;
}

// A random Fourier series: the sum over k of a_k sin((k + u) x + p_k) for k < 256, u and the phases p
// uniform, a_k = (k + u)^-decay normalised to unit length, times a normal. TabICL draws each frequency from
// (0, 256); here each has its unit interval and all share one offset. The series is then a polynomial in
// e^(ix), with four fused multiply-adds per term instead of a sine. The series ends at the first term that is
// too small to matter.
inline constexpr int fourier_terms = 256;
inline constexpr float negligible_amplitude = 0x1p-8f;

struct FourierSeries {
  float re[fourier_terms], im[fourier_terms];  // a_k e^(i p_k)
  float share[fourier_terms];                  // a_k before the normal
  float offset;                                // u
  int terms;
};

template <class Team>
FERRITE_PORTABLE_CALL void draw_fourier(Team& team, const Stream& stream, float decay,
                                        FourierSeries& series) {
  const float offset = std::fma(static_cast<float>(stream.word(4 * fourier_terms) >> 8), 0x1p-24f, 0x1p-25f);
  team.each(fourier_terms, [&](int k) {
    series.share[k] = portable_exp(-decay * portable_log(static_cast<float>(k) + offset));
  });
  const float length =
      std::sqrt(team.sum(fourier_terms, [&](int k) { return series.share[k] * series.share[k]; }));
  team.each(fourier_terms, [&](int k) {
    const Philox4x32::Block w = stream.block(static_cast<std::uint64_t>(k));
    const float amplitude = series.share[k] / length * portable_normals(w[0], w[1]).even;
    const float phase = static_cast<float>(w[2] >> 8) * 0x1p-24f;
    series.re[k] = amplitude * cos_turns(phase);
    series.im[k] = amplitude * sin_turns(phase);
  });
  const int terms =
      team.count(fourier_terms, [&](int k) { return series.share[k] >= negligible_amplitude * length; });
  team.once([&] {  // the shares fall with k; an even number of terms
    series.offset = offset;
    series.terms = lesser(greater(terms + terms % 2, 2), fourier_terms);
  });
}

inline constexpr float fourier_turn = 0.15915494309189535f;

/// The series from its even and odd powers: Im(e^(iux) (even + e^(ix) odd)).
FERRITE_PORTABLE_ELEMENT float fourier_sum(float offset, float x, float even_re, float even_im, float odd_re,
                                           float odd_im) {
  const float angle = fourier_turn * x, shift = angle * offset;
  const float c = cos_turns(angle), s = sin_turns(angle);
  const float re = std::fma(odd_re, c, std::fma(-odd_im, s, even_re));
  const float im = std::fma(odd_re, s, std::fma(odd_im, c, even_im));
  return std::fma(sin_turns(shift), re, cos_turns(shift) * im);
}
/// The values of a series at `n` places at once: Horner in e^(2ix) for the even and the odd powers.
template <int n>
FERRITE_PORTABLE void fourier_values(const FourierSeries& series, float (&x)[n]) {
  float c[n], s[n], re[2][n] = {}, im[2][n] = {};
  for (int i = 0; i < n; ++i) {
    const float angle = 2.0f * fourier_turn * x[i];
    c[i] = cos_turns(angle);
    s[i] = sin_turns(angle);
  }
  for (int k = series.terms - 2; k >= 0; k -= 2) {
    for (int parity = 0; parity < 2; ++parity) {
      const float a = series.re[k + parity], b = series.im[k + parity];
      for (int i = 0; i < n; ++i) {
        const float next = std::fma(-im[parity][i], s[i], std::fma(re[parity][i], c[i], a));
        im[parity][i] = std::fma(re[parity][i], s[i], std::fma(im[parity][i], c[i], b));
        re[parity][i] = next;
      }
    }
  }
  for (int i = 0; i < n; ++i) x[i] = fourier_sum(series.offset, x[i], re[0][i], im[0][i], re[1][i], im[1][i]);
}
FERRITE_PORTABLE float fourier_value(const FourierSeries& series, float x) {
  float values[] = {x};
  fourier_values(series, values);
  return values[0];
}

/// Mean and the reciprocal of the standard deviation (of n, epsilon 1e-6) of one column.
struct Moments {
  float mean, rstd;
};
/// By sums of the values times `unit`, a power of two.
template <class Team>
FERRITE_HOST_DEVICE Moments moments_in(Team& team, float unit, const float* x, int rows) {
  const auto n = static_cast<float>(rows);
  const float mean = team.sum(rows, [&](int r) { return x[r] * unit; }) / n;
  const float square = team.sum(rows, [&](int r) {
    const float d = x[r] * unit - mean;
    return d * d;
  });
  return {mean / unit, 1.0f / (std::sqrt(square / n) / unit + 1e-6f)};
}
/// The reciprocal is NaN if a value is not finite, and positive otherwise: if squares overflow, the sums use
/// smaller values.
template <class Team>
FERRITE_PORTABLE_CALL Moments moments(Team& team, const float* x, int rows) {
  const Moments m = moments_in(team, 1.0f, x, rows);
  return m.rstd > 0 ? m : moments_in(team, 0x1p-80f, x, rows);
}

/// f(kind) with the kind as a constant: one branch outside a loop instead of one per element.
template <class F, std::size_t... k>
FERRITE_HOST_DEVICE void with_kind(Activation kind, F&& f, std::index_sequence<k...>) {
  ((kind == static_cast<Activation>(k) ? f(std::integral_constant<Activation, static_cast<Activation>(k)>{})
                                       : void()),
   ...);
}
template <class F>
FERRITE_HOST_DEVICE void with_kind(Activation kind, F&& f) {
  with_kind(kind, f, std::make_index_sequence<plain_activations + 1>{});
}

/// Applies an activation to `columns` columns of `rows` values, in place. `series` holds the terms if it is
/// Fourier. A column with a value that is not finite becomes NaN, whatever the function does with it, so that
/// the dataset is rejected.
template <class Team>
FERRITE_PORTABLE_CALL void apply_activation(Team& team, const ActivationPlan& plan,
                                            const FourierSeries& series, float* x, int columns, int rows) {
  team.columns(columns, [&](int c, auto& inner) {
    float* column = x + c * rows;
    const Moments m = moments(inner, column, rows);
    if (!(m.rstd > 0)) {
      inner.each(rows, [&](int r) { column[r] = missing_value(); });
      return;
    }
    const float scale = plan.scale * m.rstd, shift = std::fma(-scale, m.mean, plan.scale * plan.shift);
    with_kind(plan.kind, [&](auto kind) {
      inner.each(rows, [&](int r) { column[r] = activate(kind(), std::fma(scale, column[r], shift)); });
    });
  });
  if (plan.kind == Activation::fourier) team.fourier(series, x, columns * rows);
}

}  // namespace ferrite::priors
