// What the commands that run a language model share.
#pragma once

#include <string>

#include "cli/command.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/stacks/any_backend.hpp"
#include "ferrite/text/bpe.hpp"

namespace ferrite::cli::gpt {

/// The options --model, --backend and --int8.
struct ModelOptions {
  std::string file, backend = "auto";
  bool int8 = false;
};
/// The option --model, which the caller may make required, --backend and --int8.
CLI::Option* add_model_options(CLI::App& command, ModelOptions& options);
/// Throws ValueError for a folder and for no name at all, with what to give instead. `option`: "--model".
void check_model_file(const std::string& option, const std::string& file);
/// Of the file, once it is checked so.
nn::GptConfig read_model_config(const std::string& option, const std::string& file);
nn::Gpt<AnyBackend> load_model(AnyBackend& backend, const ModelOptions& options);

/// The model that comes with ferrite, and its tokenizer: it has read Shakespeare (docs/gpt.md). Throws
/// ValueError if the files are not there.
struct SharedModel {
  std::string file, tokenizer;
};
SharedModel shared_model();

/// Throws ValueError if the tokenizer has more tokens than the model.
void check_tokenizer(const std::string& file, const text::BytePairTokenizer& tokenizer,
                     const nn::GptConfig& model);

/// "gpt 12 layers, 12 heads, dim 768, context 1024, 50257 tokens"
std::string describe(const nn::GptConfig& config);

}  // namespace ferrite::cli::gpt
