#include "ferrite/nn/sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "ferrite/core/error.hpp"

namespace ferrite::nn {

void GenerateConfig::check() const {
  const auto refuse = [](std::string_view name, auto value, std::string_view rule) {
    throw ValueError(fmt::format("[generate] {} {}: {}", name, value, rule));
  };
  if (tokens < 0) refuse("tokens", tokens, "must be 0 or more");
  if (!(temperature >= 0 && std::isfinite(temperature)))
    refuse("temperature", temperature, "must be 0 (the likeliest token) or more");
  if (top_k < 0) refuse("top_k", top_k, "must be 0 (all tokens) or more");
  if (!(top_p > 0 && top_p <= 1)) refuse("top_p", top_p, "must lie above 0 and be at most 1 (all tokens)");
  if (!(repetition_penalty > 0 && std::isfinite(repetition_penalty)))
    refuse("repetition_penalty", repetition_penalty, "must be positive; 1 means none");
  if (vocabulary < 0) refuse("vocabulary", vocabulary, "must be 0 (all tokens) or more");
}

Sampler::Sampler(GenerateConfig config) : config_(std::move(config)) { config_.check(); }

void Sampler::penalise(std::span<const std::int32_t> text) {
  const auto penalty = static_cast<float>(config_.repetition_penalty);
  for (const std::int32_t id : std::unordered_set<std::int32_t>(text.begin(), text.end())) {
    if (static_cast<std::size_t>(id) >= scores_.size()) continue;
    float& score = scores_[static_cast<std::size_t>(id)];
    score = score > 0 ? score / penalty : score * penalty;
  }
}

std::int32_t Sampler::pick(std::span<const float> scores, std::span<const std::int32_t> text,
                           std::uint64_t stream, std::uint64_t index) {
  if (config_.vocabulary > 0)
    scores = scores.first(std::min(scores.size(), static_cast<std::size_t>(config_.vocabulary)));
  scores_.assign(scores.begin(), scores.end());
  if (config_.repetition_penalty != 1) penalise(text);
  // NaN compares as equal to everything, so it is looked for by itself.
  const auto best = std::ranges::max_element(scores_);
  const bool is_nan = std::ranges::any_of(scores_, [](float s) { return std::isnan(s); });
  if (scores_.empty() || is_nan || !std::isfinite(*best))
    throw ValueError(
        fmt::format("[generate] the scores of the next token, token {} of text {}, {}: the model's weights "
                    "are damaged, or too large for their dtype",
                    index, stream, is_nan ? "hold NaN" : "have no finite maximum"));
  if (config_.temperature == 0) return static_cast<std::int32_t>(best - scores_.begin());
  return draw(uniform_at<double>({config_.seed, stream}, index));
}

std::int32_t Sampler::draw(double uniform) {
  candidates_.resize(scores_.size());
  std::iota(candidates_.begin(), candidates_.end(), 0);
  const auto score = [&](std::int32_t id) { return scores_[static_cast<std::size_t>(id)]; };
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  const std::size_t all = candidates_.size();
  const std::size_t kept = config_.top_k > 0 ? std::min(all, static_cast<std::size_t>(config_.top_k)) : all;
  // Without a limit the order does not matter, and sorting would take most of the time.
  if (kept < all || config_.top_p < 1)
    std::ranges::partial_sort(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(kept), likelier);
  candidates_.resize(kept);

  const double top = *std::ranges::max_element(scores_);
  weights_.clear();
  for (const std::int32_t id : candidates_)
    weights_.push_back(std::exp((static_cast<double>(score(id)) - top) / config_.temperature));
  double total = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  if (config_.top_p < 1) {
    const double enough = config_.top_p * total;
    std::size_t n = 0;
    for (total = 0; n < weights_.size() && total < enough; ++n) total += weights_[n];
    weights_.resize(n);
    candidates_.resize(n);
  }
  return walk(uniform * total);
}

/// In the order of ids, as op::NextToken has them, which does not sort.
std::int32_t Sampler::walk(double rest) {
  order_.resize(candidates_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (!std::ranges::is_sorted(candidates_))
    std::ranges::sort(order_, {}, [&](std::size_t i) { return candidates_[i]; });
  std::int32_t last = candidates_[0];
  for (const std::size_t i : order_) {
    if (weights_[i] > 0) last = candidates_[i];
    rest -= weights_[i];
    if (rest < 0) return last;
  }
  return last;
}

}  // namespace ferrite::nn
