// GenerateConfig and Sampler: which token comes next, given the scores of all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/export.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::nn {

/// How `generate` goes on with a text.
struct FERRITE_API GenerateConfig {
  /// Most new tokens of a text.
  std::int64_t tokens = 100;
  /// Scores are divided by it: below 1 likely tokens become likelier. 0 takes the likeliest.
  double temperature = 1;
  /// Only the k likeliest tokens are drawn from; 0: all.
  std::int64_t top_k = 0;
  /// Only the fewest likeliest tokens that have this probability together, after top_k, are drawn from.
  double top_p = 1;
  /// Scores of tokens that are in the text already, prompt included, are divided by it if they are positive,
  /// else multiplied by it (Keskar et al., 2019).
  double repetition_penalty = 1;
  /// Text i draws from stream i of this seed, one number for each token.
  std::uint64_t seed = 0;
  /// A text ends before one of these.
  std::vector<std::int32_t> stop_tokens = {};
  /// Only ids below it are drawn, for a tokenizer that has fewer tokens than the model; 0: all.
  std::int64_t vocabulary = 0;

  GenerateConfig with_tokens(std::int64_t v) const { return detail::with(*this, &GenerateConfig::tokens, v); }
  GenerateConfig with_temperature(double v) const {
    return detail::with(*this, &GenerateConfig::temperature, v);
  }
  GenerateConfig with_top_k(std::int64_t v) const { return detail::with(*this, &GenerateConfig::top_k, v); }
  GenerateConfig with_top_p(double v) const { return detail::with(*this, &GenerateConfig::top_p, v); }
  GenerateConfig with_repetition_penalty(double v) const {
    return detail::with(*this, &GenerateConfig::repetition_penalty, v);
  }
  GenerateConfig with_seed(std::uint64_t v) const { return detail::with(*this, &GenerateConfig::seed, v); }
  GenerateConfig with_stop_tokens(std::vector<std::int32_t> v) const {
    return detail::with(*this, &GenerateConfig::stop_tokens, std::move(v));
  }
  GenerateConfig with_vocabulary(std::int64_t v) const {
    return detail::with(*this, &GenerateConfig::vocabulary, v);
  }
  /// Throws ValueError for negative counts, a temperature below 0, a top_p outside (0, 1] and a penalty that
  /// is not positive.
  void check() const;
};

/// Draws tokens. Equal scores give equal tokens for a seed, on every machine; where two scores are equal, the
/// lower id counts as likelier. One thread at a time.
class FERRITE_API Sampler {
 public:
  /// Throws ValueError as GenerateConfig::check does.
  explicit Sampler(GenerateConfig config);

  /// `scores` are logits, one for each token. `text` is what the token follows; draw `index` of stream
  /// `stream` decides. Throws ValueError if the highest score is not finite.
  std::int32_t pick(std::span<const float> scores, std::span<const std::int32_t> text, std::uint64_t stream,
                    std::uint64_t index);
  const GenerateConfig& config() const { return config_; }

 private:
  void penalise(std::span<const std::int32_t> text);
  std::int32_t draw(double uniform);
  std::int32_t walk(double rest);

  GenerateConfig config_;
  std::vector<float> scores_;
  std::vector<std::int32_t> candidates_;  // ids
  std::vector<double> weights_;           // of the candidates
  std::vector<std::size_t> order_;        // of the candidates, by their ids
};

}  // namespace ferrite::nn
