// Formula: y = sum over terms of c f(w x_j + b). Features are uniform with 16 random bits each, so that one
// Philox block serves eight of them; every function here is one row or one term of one dataset.
#pragma once

#include "ferrite/models/priors/config.hpp"
#include "models/priors/draws.hpp"

namespace ferrite::priors {

enum class TermKind : std::uint8_t { linear, sin, cos, tanh, exp };
inline constexpr int term_kinds = 5;
inline constexpr const char* term_names[] = {"linear", "sin", "cos", "tanh", "exp"};

struct FormulaTerm {
  TermKind kind;
  std::uint16_t feature;
  float c, w, b;  // of sin and cos, w and b are in turns
};

/// floor(n u) of a uniform u given by 32 bits.
FERRITE_PORTABLE int scaled_word(std::uint32_t word, int n) {
  return static_cast<int>(std::uint64_t{word} * static_cast<std::uint32_t>(n) >> 32);
}
/// Uniform in [low, low + width) with a random sign, from one word.
struct SignedUniform {
  float low, width;
  FERRITE_HOST_DEVICE float operator()(std::uint32_t word) const {
    const float magnitude = std::fma(static_cast<float>(word >> 8) * 0x1p-24f, width, low);
    return word & 1 ? -magnitude : magnitude;
  }
};
FERRITE_PORTABLE SignedUniform signed_uniform(double low, double high) {
  return {static_cast<float>(low), static_cast<float>(high - low)};
}

/// The config in the arithmetic of the draws.
struct FormulaLaw {
  int terms_min, terms_max, features;
  SignedUniform coefficient, frequency, shift;
  float range, noise;
};
FERRITE_PORTABLE FormulaLaw formula_law(const FormulaConfig& config, int features) {
  return {config.terms.min,
          config.terms.max,
          features,
          signed_uniform(config.coefficient.min, config.coefficient.max),
          signed_uniform(config.frequency.min, config.frequency.max),
          signed_uniform(0, config.shift),
          static_cast<float>(config.range),
          static_cast<float>(config.noise)};
}

// Block 0 of the stream formula_terms says how many terms a dataset has, block k + 1 is term k.

FERRITE_PORTABLE int formula_terms(const FormulaLaw& law, const Philox4x32::Block& block) {
  return law.terms_min + scaled_word(block[0], law.terms_max - law.terms_min + 1);
}
FERRITE_PORTABLE FormulaTerm formula_term(const FormulaLaw& law, const Philox4x32::Block& w, int k) {
  FormulaTerm term;
  term.kind = static_cast<TermKind>(scaled_word(w[0] << 16, term_kinds));
  // The first terms take one feature each, so that few are without effect.
  term.feature =
      static_cast<std::uint16_t>(k < law.features ? k : scaled_word(w[0] & 0xffff0000u, law.features));
  term.c = law.coefficient(w[1]);
  term.w = law.frequency(w[2]);
  term.b = law.shift(w[3]);
  const float scale = term.kind == TermKind::sin || term.kind == TermKind::cos ? 0.15915494309189535f
                      : term.kind == TermKind::exp                             ? 0.5f
                                                                               : 1.0f;
  term.w *= scale;
  term.b *= scale;
  return term;
}
FERRITE_PORTABLE int formula_terms(const FormulaLaw& law, const DatasetKey& key) {
  return formula_terms(law, key.stream(Purpose::formula_terms).block(0));
}
FERRITE_PORTABLE FormulaTerm formula_term(const FormulaLaw& law, const DatasetKey& key, int k) {
  return formula_term(law, key.stream(Purpose::formula_terms).block(static_cast<std::uint64_t>(k) + 1), k);
}
FERRITE_PORTABLE void draw_formula(const FormulaLaw& law, const DatasetKey& key, FormulaTerm* terms) {
  for (int k = 0; k < formula_terms(law, key); ++k) terms[k] = formula_term(law, key, k);
}

/// The limits of FormulaConfig keep z below 2^22.
FERRITE_PORTABLE_ELEMENT float term_function(TermKind kind, float z) {
  switch (kind) {
    case TermKind::sin:
      return sin_of_turn(z - rounded(z));
    case TermKind::cos:
      return sin_of_turn(0.25f - std::fabs(z - rounded(z)));
    case TermKind::tanh:
      return portable_tanh(z);
    case TermKind::exp:
      return portable_exp(z);
    default:
      return z;
  }
}
/// Adds one term to y.
FERRITE_PORTABLE_ELEMENT float add_term(const FormulaTerm& term, float x, float y) {
  return std::fma(term.c, term_function(term.kind, std::fma(term.w, x, term.b)), y);
}

// The features of a dataset, element = row * features + column, come eight from a block of the stream
// formula_values. Block 32 g + l has elements 4 l to 4 l + 3 of group g in the halves (low, high) of its
// first two words, elements 128 + 4 l to 128 + 4 l + 3 in those of the others. So 32 threads write whole
// lines.
inline constexpr int feature_group = 256, feature_blocks = feature_group / 8;

/// The number in its group of what half i (0 to 7) of block l (0 to 31) gives.
FERRITE_PORTABLE_ELEMENT int feature_place(int l, int i) {
  return i / 4 * (feature_group / 2) + 4 * l + i % 4;
}
FERRITE_PORTABLE_ELEMENT float feature_from_half(std::uint32_t half, float range) {
  return std::fma(static_cast<float>(half), range * 0x1p-15f, range * (0x1p-16f - 1.0f));
}

}  // namespace ferrite::priors
