#include "ferrite/nn/generate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace ferrite::nn {
namespace {

void check_prompt(std::size_t number, std::span<const std::int32_t> prompt, const GptConfig& model) {
  if (prompt.empty())
    throw ValueError(fmt::format(
        "[generate] prompt {} is empty: begin with a token, such as that of the end of a text", number));
  if (std::ssize(prompt) > model.context)
    throw ValueError(
        fmt::format("[generate] prompt {} has {} tokens: the model's context has {}; give the last ones",
                    number, prompt.size(), model.context));
  for (const std::int32_t id : prompt)
    if (id < 0 || id >= model.vocab)
      throw ValueError(fmt::format("[generate] prompt {} has the id {}: the model's vocabulary has 0 to {}",
                                   number, id, model.vocab - 1));
}

}  // namespace

GeneratingTexts::GeneratingTexts(std::vector<std::vector<std::int32_t>> prompts, const GptConfig& model,
                                 const GenerateConfig& config)
    : sampler_(config), context_(model.context) {
  if (prompts.empty()) throw ValueError("[generate] no prompts: give at least one");
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    check_prompt(i, prompts[i], model);
    longest = std::max<std::int64_t>(longest, std::ssize(prompts[i]));
    texts_.push_back({std::move(prompts[i]), 0, config.tokens == 0, false});
    texts_.back().prompt = texts_.back().ids.size();
  }
  capacity_ = config.tokens < context_ - longest ? longest + config.tokens : context_;
  unfinished_ = config.tokens == 0 ? 0 : texts_.size();
}

GeneratingTexts::Window GeneratingTexts::next_window(std::int64_t read) {
  Window window{{}, 0, read == context_};
  const std::int64_t begin = window.restart ? end_ - context_ / 2 : end_;
  // Up to the end of the shortest text: from there on its next token is needed.
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (const Text& text : texts_)
    if (!text.finished) end = std::min<std::int64_t>(end, std::ssize(text.ids));
  for (const Text& text : texts_)
    for (std::int64_t i = begin; i < end; ++i)  // what a finished text goes on with does not matter
      window.ids.push_back(
          text.ids[static_cast<std::size_t>(std::min<std::int64_t>(i, std::ssize(text.ids) - 1))]);
  window.length = end - begin;
  end_ = end;
  return window;
}

void GeneratingTexts::finish(Text& text, bool stopped) {
  text.finished = true;
  text.stopped = stopped;
  --unfinished_;
}

void GeneratingTexts::append(std::size_t number, std::int32_t token, const TokenCallback& on_token) {
  Text& text = texts_[number];
  if (std::ranges::count(sampler_.config().stop_tokens, token) > 0) return finish(text, true);
  text.ids.push_back(token);
  const bool is_last =
      std::ssize(text.ids) - static_cast<std::int64_t>(text.prompt) == sampler_.config().tokens;
  const Next next = on_token ? on_token(number, token) : Next::more;
  if (next == Next::stop || is_last) finish(text, next == Next::stop);
}

template <class Pick>
void GeneratingTexts::extend_by(const Pick& pick, const TokenCallback& on_token) {
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    if (text.finished || std::ssize(text.ids) > end_) continue;
    append(i, pick(i, text), on_token);
  }
}

void GeneratingTexts::extend(std::span<const float> scores, const TokenCallback& on_token) {
  const std::size_t vocab = scores.size() / texts_.size();
  const auto pick = [&](std::size_t i, const Text& text) {
    return sampler_.pick(scores.subspan(i * vocab, vocab), text.ids, i, text.ids.size() - text.prompt);
  };
  extend_by(pick, on_token);
}

void GeneratingTexts::extend(std::span<const std::int32_t> tokens, const TokenCallback& on_token) {
  const auto pick = [&](std::size_t i, const Text& text) {
    if (tokens[i] < 0)
      throw ValueError(fmt::format(
          "[generate] the scores of the next token, token {} of text {}, hold NaN or have no finite maximum: "
          "the model's weights are damaged, or too large for their dtype",
          text.ids.size() - text.prompt, i));
    return tokens[i];
  };
  extend_by(pick, on_token);
}

DecoderStart GeneratingTexts::start_of(const Window& window, std::int64_t columns, std::int64_t vocab) const {
  DecoderStart start{window.ids, window.length, {}, {}, {}};
  const std::int64_t begin = end_ - window.length;
  for (std::size_t n = 0; n < texts_.size(); ++n) {
    const auto& [ids, prompt, finished, stopped] = texts_[n];
    for (std::int64_t i = begin; i < begin + columns; ++i) {
      start.text.push_back(i < std::ssize(ids) ? ids[static_cast<std::size_t>(i)] : -1);
      const std::int64_t drawn = std::max<std::int64_t>(i - static_cast<std::int64_t>(prompt), 0);
      start.uniforms.push_back(uniform_at<double>({config().seed, n}, static_cast<std::uint64_t>(drawn)));
    }
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(vocab), 0);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(end_, std::ssize(ids)); ++i)
      seen[static_cast<std::size_t>(ids[static_cast<std::size_t>(i)])] = 1;
    start.seen.insert(start.seen.end(), seen.begin(), seen.end());
  }
  return start;
}

std::vector<Generated> GeneratingTexts::results() {
  std::vector<Generated> results;
  for (const Text& text : texts_)
    results.push_back(
        {{text.ids.begin() + static_cast<std::ptrdiff_t>(text.prompt), text.ids.end()}, text.stopped});
  return results;
}

}  // namespace ferrite::nn
