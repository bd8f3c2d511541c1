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
/// Uniform in [low, high) with a random sign, from one word.
FERRITE_PORTABLE float signed_uniform(std::uint32_t word, double low, double high) {
  const float magnitude = std::fma(static_cast<float>(word >> 8) * 0x1p-24f, static_cast<float>(high - low),
                                   static_cast<float>(low));
  return word & 1 ? -magnitude : magnitude;
}

FERRITE_PORTABLE int formula_terms(const FormulaConfig& config, const DatasetKey& key) {
  const std::uint32_t word = key.stream(Purpose::formula_terms).block(0)[0];
  return config.terms.min + scaled_word(word, config.terms.max - config.terms.min + 1);
}
/// Term k of a dataset: one Philox block.
FERRITE_PORTABLE FormulaTerm formula_term(const FormulaConfig& config, const DatasetKey& key, int features,
                                          int k) {
  const Philox4x32::Block w = key.stream(Purpose::formula_terms).block(static_cast<std::uint64_t>(k) + 1);
  FormulaTerm term;
  term.kind = static_cast<TermKind>(scaled_word(w[0] << 16, term_kinds));
  // The first terms take one feature each, so that few are without effect.
  term.feature = static_cast<std::uint16_t>(k < features ? k : scaled_word(w[0] & 0xffff0000u, features));
  term.c = signed_uniform(w[1], config.coefficient.min, config.coefficient.max);
  term.w = signed_uniform(w[2], config.frequency.min, config.frequency.max);
  term.b = signed_uniform(w[3], 0, config.shift);
  const float scale = term.kind == TermKind::sin || term.kind == TermKind::cos ? 0.15915494309189535f
                      : term.kind == TermKind::exp                             ? 0.5f
                                                                               : 1.0f;
  term.w *= scale;
  term.b *= scale;
  return term;
}
FERRITE_PORTABLE_ELEMENT float term_function(TermKind kind, float z) {
  switch (kind) {
    case TermKind::sin:
      return sin_turns(z);
    case TermKind::cos:
      return cos_turns(z);
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

/// The features of a dataset, element = row * features + column, come eight from a block of the stream
/// formula_values: element e is half e % 2 (low, high) of word e % 8 / 2 of block e / 8.
FERRITE_PORTABLE_ELEMENT float feature_from_half(std::uint32_t half, float range) {
  return std::fma(static_cast<float>(half), range * 0x1p-15f, range * (0x1p-16f - 1.0f));
}

}  // namespace ferrite::priors
