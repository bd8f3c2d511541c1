// generate: goes on with texts, token by token.
//
//   const auto config = nn::GenerateConfig{}.with_tokens(200).with_temperature(0.8).with_top_k(50);
//   const auto texts = nn::generate(model, {tokenizer.encode("Once upon a time")}, config);
//   std::cout << tokenizer.decode(texts[0].tokens);
#pragma once

#include <functional>

#include "ferrite/nn/decoder.hpp"

namespace ferrite::nn {

/// The new tokens of a text, without its prompt.
struct Generated {
  std::vector<std::int32_t> tokens;
  /// Whether a stop token or the callback ended it, before it had all tokens.
  bool stopped = false;
};

/// What a callback says after a token.
enum class Next : std::uint8_t { more, stop };
/// Gets each new token when it is there: `text` is the number of its prompt.
using TokenCallback = std::function<Next(std::size_t text, std::int32_t token)>;

/// The texts of a batch while they grow, and the part of them that the model reads next.
class FERRITE_API GeneratingTexts {
 public:
  /// Throws ValueError: see generate.
  GeneratingTexts(std::vector<std::vector<std::int32_t>> prompts, const GptConfig& model,
                  const GenerateConfig& config);

  bool done() const { return unfinished_ == 0; }
  std::int64_t batch() const { return static_cast<std::int64_t>(texts_.size()); }
  /// Positions that the model needs at once.
  std::int64_t capacity() const { return capacity_; }

  /// What follows the `read` positions in the cache. `restart`: the cache was full; it must be cleared, and
  /// these tokens begin a new context.
  struct Window {
    std::vector<std::int32_t> ids;  // [batch, length]
    std::int64_t length;
    bool restart;
  };
  Window next_window(std::int64_t read);
  /// Picks the next token of every text that the model has read to its end. `scores` are those at the last
  /// position of the window, [batch, vocab].
  void extend(std::span<const float> scores, const TokenCallback& on_token);
  /// The same with tokens that were picked elsewhere, [batch]; those of texts that go on otherwise do not
  /// count. ValueError for a negative one, which stands for scores that are not numbers.
  void extend(std::span<const std::int32_t> tokens, const TokenCallback& on_token);
  /// The model has read one more position of every text.
  void read_one_more() { ++end_; }
  /// What a Decoder needs to go on from a window, [batch, columns] each: the tokens that are known from the
  /// window's first on, -1 elsewhere, and the random numbers that decide about the others.
  DecoderStart start_of(const Window& window, std::int64_t columns, std::int64_t vocab) const;
  const GenerateConfig& config() const { return sampler_.config(); }
  std::vector<Generated> results();

 private:
  struct Text {
    std::vector<std::int32_t> ids;  // the prompt, and what follows
    std::size_t prompt;             // its length
    bool finished, stopped;
  };
  template <class Pick>
  void extend_by(const Pick& pick, const TokenCallback& on_token);
  void append(std::size_t number, std::int32_t token, const TokenCallback& on_token);
  void finish(Text& text, bool stopped);

  std::vector<Text> texts_;
  Sampler sampler_;
  std::int64_t context_, capacity_, end_ = 0;  // end_: of what the model has read of every text
  std::size_t unfinished_ = 0;
};

/// `generate` by a Decoder, on any backend: nothing but tokens comes back to the host, late, so that the
/// device does not wait for it. `recorded`: steps are recorded and replayed, on a backend that can. The
/// results do not depend on it.
template <class B>
std::vector<Generated> generate_on_device(Gpt<B>& model,
                                          const std::vector<std::vector<std::int32_t>>& prompts,
                                          const GenerateConfig& config, const TokenCallback& on_token,
                                          bool recorded) {
  GeneratingTexts texts(prompts, model.config(), config);
  const ModeScope<B> inference(model, Mode::inference);
  const NoGrad no_grad;
  if (texts.done()) return texts.results();
  Decoder<B> decoder(model, texts.batch(), texts.capacity(), config);
  bool is_first = true;  // of its window
  const auto take = [&] {
    for (const std::vector<std::int32_t>& tokens : decoder.take()) {
      if (texts.done()) break;
      if (!is_first) texts.read_one_more();
      is_first = false;
      texts.extend(std::span(tokens), on_token);
    }
  };
  std::int64_t read = 0;
  while (!texts.done()) {
    const GeneratingTexts::Window window = texts.next_window(read);
    is_first = true;
    decoder.start(texts.start_of(window, decoder.columns(), model.config().vocab));
    while (!texts.done() && decoder.steps_left() > 0) {
      decoder.step(recorded);
      if (decoder.pending() > Decoder<B>::most_pending) take();
    }
    while (!texts.done() && decoder.pending() > 0) take();
    read = texts.capacity();
  }
  decoder.finish();
  return texts.results();
}

/// Goes on with each prompt by up to config.tokens tokens. Texts of a batch are read together, so a batch
/// costs hardly more than one text; the part of longer prompts that the shortest does not have is read token
/// by token, so prompts of similar lengths are best. When the context is full, its later half begins a new
/// one: the model reads it again, and forgets what was before. Sets the model to inference while it runs.
/// On a backend that can record (a GPU), the steps run there by themselves, and the callback gets its tokens
/// a few steps later; those that it no longer wants are thrown away.
/// Throws ValueError for no prompts, and for one that is empty, longer than the context or has an id that is
/// not in the vocabulary; and as Sampler does.
template <class B>
std::vector<Generated> generate(Gpt<B>& model, const std::vector<std::vector<std::int32_t>>& prompts,
                                const GenerateConfig& config = {}, const TokenCallback& on_token = {}) {
  B backend = model.tokens.weight.backend();
  if (can_record(backend)) return generate_on_device(model, prompts, config, on_token, true);
  GeneratingTexts texts(prompts, model.config(), config);
  const ModeScope<B> inference(model, Mode::inference);
  const NoGrad no_grad;
  KvCache<B> cache = model.make_cache(texts.batch(), texts.capacity());
  while (!texts.done()) {
    const GeneratingTexts::Window window = texts.next_window(cache.length());
    if (window.restart) cache.clear();
    const Tensor<B> ids = from_vector(backend, window.ids, {texts.batch(), window.length});
    const std::vector<float> scores = model.next_scores(ids, cache).template to_vector<float>();
    texts.extend(std::span(scores), on_token);
  }
  return texts.results();
}

}  // namespace ferrite::nn
