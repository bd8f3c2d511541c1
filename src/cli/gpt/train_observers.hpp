// The texts that `ferrite gpt train` lets a model write while it trains.
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "cli/gpt/train.hpp"
#include "ferrite/nn/generate.hpp"
#include "ferrite/text/bpe.hpp"
#include "ferrite/train/observer.hpp"

namespace ferrite::cli::gpt {

/// Lets the model write a text at the first report after every `every` steps. Training does not depend on
/// it: the texts have random numbers of their own.
template <class B>
class Samples final : public train::Observer {
 public:
  Samples(nn::Gpt<B>& model, const text::BytePairTokenizer& tokenizer, const std::string& prompt,
          std::int64_t every)  // throws as nn::generate does
      : model_(model), tokenizer_(tokenizer), prompt_(tokenizer.encode(prompt)), every_(every) {
    constexpr std::string_view end_of_text = "<|endoftext|>";
    if (prompt_.empty() && tokenizer.special_tokens().contains(end_of_text))
      prompt_ = {tokenizer.special_token(end_of_text)};
    if (prompt_.empty()) prompt_ = tokenizer.encode("\n");
    config_ = config_.with_temperature(0.8).with_top_k(50);
    config_.tokens = 100;
    config_.vocabulary = tokenizer.vocabulary_size();
    static_cast<void>(
        nn::GeneratingTexts({prompt_}, model.config(), config_));  // refuses now what it cannot do
  }
  void on_resume(std::int64_t step) override { last_ = step; }
  void on_progress(const train::Progress& progress) override {
    const bool due = progress.step / every_ > last_ / every_;
    last_ = progress.step;
    if (!due) return;
    std::string text;
    try {
      const auto texts = nn::generate(model_, {prompt_}, config_);
      text = tokenizer_.decode(prompt_) + tokenizer_.decode(texts[0].tokens);
    } catch (const Error& error) {  // a text is not worth a training
      text = fmt::format("(no text: {})", error.what());
    }
    text = fmt::format("--- step {} ---\n{}\n", progress.step, text);
    std::fwrite(text.data(), 1, text.size(), stdout);  // a model may write any bytes
    std::fflush(stdout);
  }

 private:
  nn::Gpt<B>& model_;
  const text::BytePairTokenizer& tokenizer_;
  std::vector<text::Token> prompt_;
  nn::GenerateConfig config_;
  std::int64_t every_, last_ = 0;
};

}  // namespace ferrite::cli::gpt
