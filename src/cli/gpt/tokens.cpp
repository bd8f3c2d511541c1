// ferrite gpt tokens: text files to token files.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/gpt/gpt.hpp"
#include "cli/gpt/text_files.hpp"
#include "cli/gpt/token_shards.hpp"
#include "cli/show_json.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/text/bpe.hpp"

namespace ferrite::cli {
namespace {

using namespace gpt;

struct TokensOptions {
  std::vector<std::string> text;
  std::string tokenizer, out, eot = "<|endoftext|>";
  std::int64_t shard_tokens = 100'000'000;
  bool shard_tokens_given = false, no_eot = false, special = false, overwrite = false, json = false,
       quiet = false;
};

std::optional<text::Token> eot_token(const TokensOptions& o, const text::BytePairTokenizer& tokenizer) {
  if (o.no_eot) return std::nullopt;
  const auto& special = tokenizer.special_tokens();
  if (const auto found = special.find(o.eot); found != special.end()) return found->second;
  std::string names;
  for (const auto& [name, id] : special) names += " " + name;
  throw ValueError(
      fmt::format("[gpt tokens] {}: has no special token {}: name another with --eot (there are:{}), or none "
                  "with --no-eot",
                  o.tokenizer, o.eot, names.empty() ? " none" : names));
}

/// Returns the seconds that it took.
double encode_to(TokenShards& shards, const TextFiles& texts, const text::BytePairTokenizer& tokenizer,
                 std::optional<text::Token> eot, const TokensOptions& o) {
  const auto special = o.special ? text::SpecialText::recognised : text::SpecialText::ordinary;
  ProgressLine bar(o.quiet || o.json ? nullptr : stderr);
  double done = 0;
  texts.for_each_group([&](std::span<const TextPiece> group) {
    std::vector<std::string_view> pieces;
    for (const TextPiece& piece : group) pieces.push_back(piece.text);
    const auto encoded = tokenizer.encode_all(pieces, special);
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (eot && group[i].begins_file && shards.size() > 0) shards.write({&*eot, 1});
      shards.write(encoded[i]);
      done += static_cast<double>(pieces[i].size());
    }
    const double share = done / static_cast<double>(texts.bytes());
    bar("tokens", share, fmt::format("{:3.0f}%  {}/s", 100 * share, size_text(done / bar.seconds())));
  });
  return bar.seconds();
}

void print_result(const TokenShards& shards, const TextFiles& texts, std::int64_t vocabulary, DType dtype,
                  double seconds, const TokensOptions& o) {
  const auto bytes = static_cast<double>(texts.bytes());
  const double rate = bytes / std::max(seconds, 1e-3);
  std::vector<std::string> names;
  for (const std::filesystem::path& file : shards.files()) names.push_back(file.string());
  if (o.json) {
    const nlohmann::ordered_json json{{"files", texts.size()},    {"bytes", texts.bytes()},
                                      {"tokens", shards.size()},  {"dtype", to_string(dtype)},
                                      {"vocabulary", vocabulary}, {"shards", names},
                                      {"seconds", seconds},       {"bytes_per_second", rate}};
    show_json(json);
  } else if (!o.quiet) {
    fmt::print("{} tokens ({}) from {}, {:.2f} bytes per token, {:.1f} s, {}/s: {}{}\n", shards.size(),
               to_string(dtype), size_text(texts), bytes / static_cast<double>(shards.size()), seconds,
               size_text(rate), names.front(), names.size() > 1 ? " to " + names.back() : "");
  }
}

int run_tokens(const TokensOptions& o) {
  const ShardNames names(o.out);
  if (o.shard_tokens_given && !names.numbered())
    throw ValueError(fmt::format(
        "[gpt tokens] --out '{}': --shard-tokens needs a number in it, such as 'shard_%04d.bin'", o.out));
  const TextFiles texts(o.text);
  const auto tokenizer = text::BytePairTokenizer::load(o.tokenizer);
  const std::optional<text::Token> eot = eot_token(o, tokenizer);
  const DType dtype = data::token_dtype(tokenizer.vocabulary_size());
  const std::int64_t most = names.numbered() ? o.shard_tokens : TokenShards::most_tokens;
  std::vector<std::filesystem::path> kept = texts.paths();
  kept.emplace_back(o.tokenizer);
  TokenShards shards(names, dtype, most, o.overwrite, std::move(kept));
  const double seconds = encode_to(shards, texts, tokenizer, eot, o);
  shards.commit();
  print_result(shards, texts, tokenizer.vocabulary_size(), dtype, seconds, o);
  return success;
}

}  // namespace

void add_gpt_tokens(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<TokensOptions>();
  CLI::App* command = gpt.add_subcommand("tokens", "Write the tokens of text files, for training");
  add_text_option(*command, o->text);
  command->add_option("--tokenizer", o->tokenizer, "vocab.bpe, a .tiktoken file or a tokenizer.json")
      ->required();
  command
      ->add_option("--out", o->out,
                   "Token file in llm.c's format; a number such as %04d in its name makes several of it")
      ->required();
  const std::map<std::string, std::int64_t> units{{"K", 1000}, {"M", 1'000'000}, {"G", 1'000'000'000}};
  CLI::Option* shard_tokens =
      command
          ->add_option("--shard-tokens", o->shard_tokens,
                       "Tokens of a file, such as 100M (default) or 500K; the last may have 1% more")
          ->transform(CLI::AsNumberWithUnit(units))
          ->check(between(1, TokenShards::most_tokens))
          ->option_text("COUNT");
  command->add_option("--eot", o->eot, "The special token between documents")->capture_default_str();
  command->add_flag("--no-eot", o->no_eot, "No token between documents");
  command->add_flag("--special-text", o->special,
                    "Where a text has the name of a special token, take the token: only for texts you trust");
  command->add_flag("--overwrite", o->overwrite, "Replace the files of an earlier run");
  command->add_flag("--json", o->json, "Print the result as JSON");
  command->add_flag("--quiet", o->quiet, "Print nothing");
  command->footer(
      "Tokens are u16 if the vocabulary has at most 65536, else u32. A run that fails leaves no files; one "
      "that\n"
      "is interrupted, those of --out that were complete.\n"
      "Examples:\n"
      "  ferrite gpt tokens --text book.txt --tokenizer vocab.bpe --out book.bin\n"
      "  ferrite gpt tokens --text 'books/*.txt' --tokenizer vocab.bpe --out 'shard_%04d.bin' --shard-tokens "
      "100M\n"
      "  ferrite gpt tokens --text stories.txt --special-text --tokenizer mine.bpe --out stories.bin --json");
  command->callback([&action, o, shard_tokens] {
    o->shard_tokens_given = shard_tokens->count() > 0;
    action = [o] { return run_tokens(*o); };
  });
}

}  // namespace ferrite::cli
