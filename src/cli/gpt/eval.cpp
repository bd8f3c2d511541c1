// ferrite gpt eval: how well a language model predicts the tokens of files.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/gpt/gpt.hpp"
#include "cli/gpt/model.hpp"
#include "cli/input_files.hpp"
#include "cli/show_json.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/data/token_file.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli {
namespace {

using namespace gpt;

struct EvalOptions {
  ModelOptions model;
  std::vector<std::string> data;
  std::string tokenizer, dtype;
  std::int64_t batch = 4, length = 0;
  bool json = false, quiet = false;
};

/// What is known of the tokens that were predicted.
struct Sums {
  double loss = 0, seconds = 0;
  std::int64_t tokens = 0, bytes = 0;
};

std::vector<data::TokenFile> open(const EvalOptions& o) {
  std::vector<data::TokenFile> files;
  for (const auto& path : input_files(o.data)) {
    files.push_back(o.dtype.empty() ? data::TokenFile::open(path)
                                    : data::TokenFile::open(path, dtype_from_string(o.dtype)));
    if (files.back().size() < 2)
      throw ValueError(fmt::format("[gpt eval] {}: has {}: one must follow another", path.string(),
                                   files.back().size() == 0 ? "no tokens" : "one token"));
  }
  return files;
}

/// Bytes of text; special tokens are not text.
std::int64_t bytes_of(std::span<const std::int32_t> ids, const text::BytePairTokenizer& tokenizer) {
  std::set<text::Token> special;
  for (const auto& [name, id] : tokenizer.special_tokens()) special.insert(id);
  std::int64_t bytes = 0;
  for (const std::int32_t id : ids)
    if (!special.contains(id)) bytes += std::ssize(tokenizer.bytes_of(id));
  return bytes;
}

/// Windows of `length` tokens, one after the other, `batch` at a time; the last of a file may be shorter.
/// Every token but the first of a file is predicted once.
class Evaluation {
 public:
  Evaluation(nn::Gpt<AnyBackend>& model, const text::BytePairTokenizer* tokenizer, const EvalOptions& o)
      : model_(model),
        backend_(model.tokens.weight.backend()),
        tokenizer_(tokenizer),
        batch_(o.batch),
        length_(o.length > 0 ? o.length : model.config().context) {}

  void add(const data::TokenFile& file, const std::function<void(std::int64_t)>& progress) {
    const std::int64_t targets = file.size() - 1;
    for (std::int64_t begin = 0; begin < targets;) {
      const std::int64_t left = targets - begin;
      const std::int64_t length = std::min(length_, left), rows = std::min(batch_, left / length);
      add(file, begin, rows, length);
      begin += rows * length;
      progress(rows * length);
    }
  }
  const Sums& sums() const { return sums_; }

 private:
  void add(const data::TokenFile& file, std::int64_t begin, std::int64_t rows, std::int64_t length) {
    const std::int64_t count = rows * length;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count + 1));
    file.copy(begin, ids, model_.config().vocab);
    const std::span<const std::int32_t> all(ids), targets = all.subspan(1);
    const auto tensor = [&](std::span<const std::int32_t> tokens) {
      return from_vector(backend_, std::vector<std::int32_t>(tokens.begin(), tokens.end()), {rows, length});
    };
    const Tensor<AnyBackend> loss = model_.loss(tensor(all.first(all.size() - 1)), tensor(targets));
    const double mean = loss.item();
    if (!std::isfinite(mean))
      throw ValueError(fmt::format(
          "[gpt eval] the loss of tokens {} to {} of {} is {}: the model's weights are damaged, or its "
          "training diverged: take others",
          begin, begin + count, file.path().string(), mean));
    sums_.loss += mean * static_cast<double>(count);
    sums_.tokens += count;
    if (tokenizer_) sums_.bytes += bytes_of(targets, *tokenizer_);
  }

  nn::Gpt<AnyBackend>& model_;
  AnyBackend backend_;
  const text::BytePairTokenizer* tokenizer_;
  std::int64_t batch_, length_;
  Sums sums_;
};

void print_result(const Sums& sums, std::size_t files, const EvalOptions& o, const AnyBackend& backend) {
  const double loss = sums.loss / static_cast<double>(sums.tokens), perplexity = std::exp(loss);
  const double rate = static_cast<double>(sums.tokens) / std::max(sums.seconds, 1e-3);
  const double bits = sums.loss / std::log(2.0) / static_cast<double>(std::max<std::int64_t>(sums.bytes, 1));
  if (o.json) {
    nlohmann::ordered_json json{{"loss", loss}, {"perplexity", perplexity}};
    if (sums.bytes > 0) json.update({{"bits_per_byte", bits}, {"bytes", sums.bytes}});
    json.update(
        {{"tokens", sums.tokens}, {"files", files}, {"seconds", sums.seconds}, {"tokens_per_second", rate}});
    show_json(json);
    return;
  }
  fmt::print("loss {:.4f}, perplexity {:.2f}{}\n", loss, perplexity,
             sums.bytes > 0 ? fmt::format(", {:.4f} bits per byte", bits) : "");
  if (!o.quiet)
    fmt::print("{} tokens in {} file{}, {:.1f} s, {:.0f} tokens/s, {}\n{}", sums.tokens, files,
               files == 1 ? "" : "s", sums.seconds, rate, backend.describe(), backend.report());
}

int run_eval(const EvalOptions& o) {
  const nn::GptConfig config = read_model_config("--model", o.model.file);
  if (o.length > config.context)
    throw ValueError(fmt::format("[gpt eval] --length {}: the model's context has {}: give at most that",
                                 o.length, config.context));
  const auto files = open(o);
  std::optional<text::BytePairTokenizer> tokenizer;
  if (!o.tokenizer.empty()) {
    tokenizer = text::BytePairTokenizer::load(o.tokenizer);
    check_tokenizer(o.tokenizer, *tokenizer, config);
  }
  AnyBackend backend(o.model.backend);
  nn::Gpt<AnyBackend> model = load_model(backend, o.model);
  model.set_mode(nn::Mode::inference);
  double total = 0, done = 0;
  for (const data::TokenFile& file : files) total += static_cast<double>(file.size() - 1);
  Evaluation evaluation(model, tokenizer ? &*tokenizer : nullptr, o);
  Sums sums;
  {
    ProgressLine bar(o.quiet || o.json ? nullptr : stderr);
    for (const data::TokenFile& file : files)
      evaluation.add(file, [&](std::int64_t tokens) {
        done += static_cast<double>(tokens);
        bar("tokens", done / total);
      });
    sums = evaluation.sums();
    sums.seconds = bar.seconds();
  }
  print_result(sums, files.size(), o, backend);
  return success;
}

}  // namespace

void add_gpt_eval(CLI::App& gpt, Action& action) {
  auto o = std::make_shared<EvalOptions>();
  CLI::App* command = gpt.add_subcommand("eval", "Loss and perplexity of a model on token files");
  add_model_options(*command, o->model)->required();
  command->add_option("--data", o->data, "Token files, or patterns in quotes, such as 'val_*.bin'")
      ->required();
  command->add_option("--tokenizer", o->tokenizer,
                      "vocab.bpe, a .tiktoken file or a tokenizer.json: for the bits per byte of text");
  add_checked(*command, "--length", o->length, "Tokens that the model sees at once; 0: its context",
              whole_number);
  add_checked(*command, "--batch", o->batch, "Windows of this length at a time", positive_number);
  command->add_option("--dtype", o->dtype, "u16 or u32, for files of bare tokens without a header")
      ->check(CLI::IsMember({"u16", "u32"}));
  command->add_flag("--json", o->json, "Print the result as JSON");
  command->add_flag("--quiet", o->quiet, "Print only the result");
  command->footer(
      "Examples:\n"
      "  ferrite gpt eval --model run/best.safetensors --data 'val_*.bin'\n"
      "  ferrite gpt eval --model run/best.safetensors --data val.bin --tokenizer vocab.bpe --json");
  command->callback([&action, o] { action = [o] { return run_eval(*o); }; });
}

}  // namespace ferrite::cli
