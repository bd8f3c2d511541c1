// ferrite gpt generate: a language model goes on with texts.
#include "ferrite/nn/generate.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/gpt/gpt.hpp"
#include "cli/gpt/model.hpp"
#include "cli/show_json.hpp"
#include "ferrite/text/stop_strings.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli {
namespace {

using namespace gpt;

struct GenerateOptions {
  ModelOptions model;
  std::string tokenizer, precision = "auto";
  std::vector<std::string> prompts, stops;
  nn::GenerateConfig config = nn::GenerateConfig{}.with_tokens(200).with_temperature(0.8).with_top_k(50);
  bool no_eot = false, json = false, quiet = false;
};

constexpr std::string_view end_of_text = "<|endoftext|>";

/// The text of one prompt while its tokens come.
class GrowingText {
 public:
  GrowingText(const text::BytePairTokenizer& tokenizer, const std::vector<std::string>& stops)
      : characters_(tokenizer), stops_(stops) {}

  /// What can be shown after this token.
  std::string push(text::Token token) { return keep(stops_.push(characters_.push(token))); }
  std::string finish() {
    std::string rest = stops_.push(characters_.finish());
    return keep(rest + stops_.finish());
  }
  bool stopped() const { return stops_.found(); }
  const std::string& text() const { return text_; }

 private:
  std::string keep(std::string shown) {
    text_ += shown;
    return shown;
  }

  text::TextStream characters_;
  text::StopStrings stops_;
  std::string text_;
};

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::vector<std::vector<text::Token>> encode(const std::vector<std::string>& prompts,
                                             const text::BytePairTokenizer& tokenizer,
                                             const GenerateOptions& o) {
  std::vector<std::vector<text::Token>> all;
  for (const std::string& prompt : prompts) {
    all.push_back(tokenizer.encode(prompt));
    if (!all.back().empty()) continue;
    // A model has seen that texts begin after the end of others.
    if (!tokenizer.special_tokens().contains(end_of_text))
      throw ValueError(fmt::format("[gpt generate] {}: has no token {} to begin a text with: give a --prompt",
                                   o.tokenizer, end_of_text));
    all.back().push_back(tokenizer.special_token(end_of_text));
  }
  return all;
}

void print_json(const std::vector<std::string>& prompts, const std::vector<GrowingText>& texts,
                const std::vector<nn::Generated>& results, double seconds) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    list.push_back({{"prompt", prompts[i]},
                    {"text", texts[i].text()},
                    {"tokens", results[i].tokens},
                    {"stopped", results[i].stopped}});
    tokens += results[i].tokens.size();
  }
  const nlohmann::ordered_json json{{"texts", list},
                                    {"tokens", tokens},
                                    {"seconds", seconds},
                                    {"tokens_per_second", static_cast<double>(tokens) / seconds}};
  show_json(json);
}

nn::Gpt<AnyBackend> load_in_precision(AnyBackend& backend, const GenerateOptions& o) {
  if (o.precision == "auto") return load_model(backend, o.model);
  const DType dtype = o.precision == "bf16" ? DType::bf16 : DType::f32;
  auto model = nn::Gpt<AnyBackend>::blank(backend, train::read_gpt_config(o.model.file).with_dtype(dtype));
  model.load_state(train::read_weights(o.model.file));
  if (o.model.int8) model.quantize();
  return model;
}

int run_generate(GenerateOptions o) {
  if (o.model.file.empty()) {
    const SharedModel shared = shared_model();
    o.model.file = shared.file;
    if (o.tokenizer.empty()) o.tokenizer = shared.tokenizer;
  }
  if (o.tokenizer.empty()) throw ValueError("[gpt generate] --model: needs the --tokenizer of its text");
  const nn::GptConfig config = read_model_config("--model", o.model.file);
  const auto tokenizer = text::BytePairTokenizer::load(o.tokenizer);
  check_tokenizer(o.tokenizer, tokenizer, config);
  if (o.prompts.empty())
    o.prompts.emplace_back(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  o.config.vocabulary = tokenizer.vocabulary_size();
  if (!o.no_eot && tokenizer.special_tokens().contains(end_of_text))
    o.config.stop_tokens.push_back(tokenizer.special_token(end_of_text));
  o.config.check();
  const auto prompts = encode(o.prompts, tokenizer, o);
  std::vector<GrowingText> texts(prompts.size(), GrowingText(tokenizer, o.stops));
  nn::GeneratingTexts(prompts, config, o.config);  // refuses now what it cannot do

  AnyBackend backend(o.model.backend);
  nn::Gpt<AnyBackend> model = load_in_precision(backend, o);
  // One text appears as it grows. Several grow at once: each is shown when all are there.
  const bool streams = !o.json && texts.size() == 1;
  if (streams) show(o.prompts[0]);
  const auto start = std::chrono::steady_clock::now();
  const auto results = nn::generate(model, prompts, o.config, [&](std::size_t i, text::Token token) {
    const std::string shown = texts[i].push(token);
    if (streams) show(shown);
    return texts[i].stopped() ? nn::Next::stop : nn::Next::more;
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string rest = texts[i].finish();
    tokens += results[i].tokens.size();
    if (streams) show(rest + "\n");
    if (!streams && !o.json) show(o.prompts[i] + texts[i].text() + (i + 1 < texts.size() ? "\n\n" : "\n"));
  }
  if (o.json)
    print_json(o.prompts, texts, results, seconds);
  else if (!o.quiet)
    fmt::print(stderr, "{} tokens, {:.2f} s, {:.1f} tokens/s ({}; {})\n{}", tokens, seconds,
               static_cast<double>(tokens) / seconds, describe(model.config()), backend.describe(),
               backend.report());
  return success;
}

}  // namespace

void add_gpt_generate(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<GenerateOptions>();
  CLI::App* command = gpt.add_subcommand("generate", "Go on with a text");
  add_model_options(*command, o->model);
  command->add_option("--tokenizer", o->tokenizer, "vocab.bpe, a .tiktoken file or a tokenizer.json");
  as_texts(command->add_option("--prompt", o->prompts,
                               "How the text begins; several make a batch; without it, standard input"));
  add_checked(*command, "--tokens", o->config.tokens, "Most new tokens", whole_number);
  command->add_option("--temperature", o->config.temperature, "0: always the likeliest token; 1: as learnt")
      ->capture_default_str();
  add_checked(*command, "--top-k", o->config.top_k, "Only the K likeliest tokens; 0: all", whole_number);
  command->add_option("--top-p", o->config.top_p, "Only the likeliest tokens that have this share together")
      ->capture_default_str();
  command
      ->add_option("--repetition-penalty", o->config.repetition_penalty,
                   "Above 1: tokens of the text so far become less likely")
      ->capture_default_str();
  as_texts(command->add_option("--stop", o->stops, "The text ends before this; several may be given"));
  add_checked(*command, "--seed", o->config.seed, "Another seed, another text", whole_number);
  add_checked(*command, "--precision", o->precision,
              "Of the weights: bf16, which a GPU reads in half the time, or f32; auto: as in the file",
              CLI::IsMember({"auto", "bf16", "f32"}));
  command->add_flag("--no-eot", o->no_eot, "Go on after <|endoftext|>");
  command->add_flag("--json", o->json, "Print texts, tokens and times as JSON");
  command->add_flag("--quiet", o->quiet, "Print only the text");
  command->footer(
      "Without --model the small model that comes with ferrite writes: it has read Shakespeare.\n"
      "A text that grows longer than the model's context goes on with the later half of it. A prompt must "
      "fit.\n"
      "Examples:\n"
      "  ferrite gpt generate --prompt 'ROMEO:'\n"
      "  ferrite gpt generate --model run/best.safetensors --tokenizer vocab.bpe --prompt 'Once upon a "
      "time'\n"
      "  ferrite gpt generate --model m.safetensors --tokenizer vocab.bpe --prompt 'Q: why?' --stop 'Q:' "
      "--temperature 0\n"
      "  ferrite gpt generate --model m.safetensors --tokenizer vocab.bpe --prompt One Two --tokens 50 "
      "--json\n"
      "  ferrite gpt generate --model gpt2.safetensors --tokenizer vocab.bpe --prompt 'Once' --int8");
  command->callback([&action, o] { action = [o] { return run_generate(*o); }; });
}

}  // namespace ferrite::cli
