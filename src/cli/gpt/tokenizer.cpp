// ferrite gpt tokenizer: train | encode | decode.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/gpt/gpt.hpp"
#include "cli/gpt/text_files.hpp"
#include "cli/show_json.hpp"
#include "core/to_number.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/text/bpe_trainer.hpp"

namespace ferrite::cli {
namespace {

using namespace gpt;

struct TokenizerOptions {
  std::vector<std::string> text, words;
  std::string tokenizer, out;
  text::TrainerConfig config = text::TrainerConfig{}.with_vocabulary_size(4096);
  bool special = false, json = false, quiet = false;
};

text::BytePairTokenizer learn(text::BytePairTrainer& trainer, const TextFiles& texts, ProgressLine& bar) {
  double read = 0;
  texts.for_each_group([&](std::span<const TextPiece> group) {
    for (const TextPiece& piece : group) {
      trainer.add(piece.text);
      read += static_cast<double>(piece.text.size());
    }
    bar("words", read / static_cast<double>(texts.bytes()));
  });
  return trainer.train([&](std::int64_t done, std::int64_t total) {
    bar("merges", static_cast<double>(done) / static_cast<double>(total));
  });
}

int run_tokenizer_train(const TokenizerOptions& o) {
  const TextFiles texts(o.text);
  text::BytePairTrainer trainer(o.config);
  double seconds = 0;
  std::int64_t size = 0;
  {
    ProgressLine bar(o.quiet || o.json ? nullptr : stderr);
    const auto tokenizer = learn(trainer, texts, bar);
    tokenizer.save(o.out);
    size = tokenizer.vocabulary_size();
    seconds = bar.seconds();
  }
  if (o.json) {
    const nlohmann::ordered_json json{
        {"files", texts.size()}, {"bytes", texts.bytes()}, {"words", trainer.word_count()},
        {"vocabulary", size},    {"out", o.out},           {"seconds", seconds}};
    show_json(json);
  } else if (!o.quiet) {
    fmt::print("{} tokens from {} different words, {}, {:.1f} s: {}\n", size, trainer.word_count(),
               size_text(texts), seconds, o.out);
    if (size < o.config.vocabulary_size)
      fmt::print("fewer than {}: no other pair appears {} times; more text would have more\n",
                 o.config.vocabulary_size, o.config.least_count);
  }
  return success;
}

/// The arguments with spaces between them; without arguments, standard input.
std::string input_text(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return fmt::format("{}", fmt::join(arguments, " "));
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

int run_tokenizer_encode(const TokenizerOptions& o) {
  const auto tokenizer = text::BytePairTokenizer::load(o.tokenizer);
  const auto ids = tokenizer.encode(input_text(o.words),
                                    o.special ? text::SpecialText::recognised : text::SpecialText::ordinary);
  if (o.json)
    fmt::print("{}\n", nlohmann::json(ids).dump());
  else
    fmt::print("{}\n", fmt::join(ids, " "));
  return success;
}

/// Numbers with anything of a list between them: spaces, commas, brackets.
std::vector<text::Token> parse_ids(std::string_view list) {
  constexpr std::string_view separators = " \t\r\n,[]";
  std::vector<text::Token> ids;
  for (std::size_t at = 0; (at = list.find_first_not_of(separators, at)) != std::string_view::npos;) {
    const std::string_view word = list.substr(at, list.find_first_of(separators, at) - at);
    const auto id = to_number<text::Token>(word);
    if (!id)
      throw ValueError(fmt::format(
          "[gpt tokenizer] '{}' is not an id: give whole numbers with spaces or commas between them", word));
    ids.push_back(*id);
    at += word.size();
  }
  return ids;
}

int run_tokenizer_decode(const TokenizerOptions& o) {
  const auto tokenizer = text::BytePairTokenizer::load(o.tokenizer);
  const std::string bytes = tokenizer.decode(parse_ids(input_text(o.words)));
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  // In a file or pipe the text must be as it was.
  if (::isatty(STDOUT_FILENO) == 1 && !bytes.ends_with('\n')) fmt::print("\n");
  return success;
}

void add_tokenizer_option(CLI::App& command, TokenizerOptions& o) {
  command.add_option("--tokenizer", o.tokenizer, "vocab.bpe, a .tiktoken file or a tokenizer.json")
      ->required();
}

}  // namespace

void add_gpt_tokenizer(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<TokenizerOptions>();
  CLI::App* command = gpt.add_subcommand("tokenizer", "Byte-level BPE: train it, encode and decode text");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  ferrite gpt tokenizer train --text 'books/*.txt' --vocab 4096 --out mine.bpe\n"
      "  ferrite gpt tokenizer encode 'Hello world' --tokenizer mine.bpe");

  CLI::App* train_command = command->add_subcommand("train", "Learn a vocabulary from text files");
  add_text_option(*train_command, o->text);
  add_checked(*train_command, "--vocab", o->config.vocabulary_size,
              "Tokens: 256 bytes, merges, and <|endoftext|>; fewer if the text is short", whole_number);
  add_checked(*train_command, "--least-count", o->config.least_count,
              "Pairs that appear less often are not merged", whole_number);
  train_command
      ->add_option("--out", o->out, "By its name a .tiktoken file, a tokenizer.json (.json), or merges")
      ->required();
  train_command->add_flag("--json", o->json, "Print the result as JSON");
  train_command->add_flag("--quiet", o->quiet, "Print nothing");
  train_command->footer(
      "Examples:\n"
      "  ferrite gpt tokenizer train --text 'books/*.txt' --vocab 4096 --out mine.bpe\n"
      "  ferrite gpt tokenizer train --text a.txt b.txt --vocab 32000 --out tokenizer.json");
  train_command->callback([&action, o] { action = [o] { return run_tokenizer_train(*o); }; });

  CLI::App* encode_command = command->add_subcommand("encode", "Print the ids of a text");
  encode_command->add_option_function<std::string>(
      "text", [o](const std::string& text) { o->words = {text}; }, "The text; without it, standard input");
  add_tokenizer_option(*encode_command, *o);
  encode_command->add_flag("--special-text", o->special,
                           "Where the text has the name of a special token, take the token");
  encode_command->add_flag("--json", o->json, "Print a JSON array");
  encode_command->footer(
      "Examples:\n"
      "  ferrite gpt tokenizer encode 'Hello world' --tokenizer vocab.bpe\n"
      "  ferrite gpt tokenizer encode --tokenizer vocab.bpe < book.txt > ids.txt");
  encode_command->callback([&action, o] { action = [o] { return run_tokenizer_encode(*o); }; });

  CLI::App* decode_command = command->add_subcommand("decode", "Print the text of ids");
  decode_command->add_option("ids", o->words, "The ids; without them, standard input");
  add_tokenizer_option(*decode_command, *o);
  decode_command->footer(
      "Examples:\n"
      "  ferrite gpt tokenizer decode 15496 995 --tokenizer vocab.bpe\n"
      "  ferrite gpt tokenizer decode --tokenizer vocab.bpe < ids.txt");
  decode_command->callback([&action, o] { action = [o] { return run_tokenizer_decode(*o); }; });
}

}  // namespace ferrite::cli
