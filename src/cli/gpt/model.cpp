#include "cli/gpt/model.hpp"

#include <fmt/format.h>

#include "cli/backend_option.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"
#include "io/shared_files.hpp"

namespace ferrite::cli::gpt {

CLI::Option* add_model_options(CLI::App& command, ModelOptions& options) {
  CLI::Option* file = command.add_option(
      "--model", options.file,
      "A .safetensors file with the model's config: a checkpoint such as run/best.safetensors");
  add_backend_option(&command, options.backend, "Where the model runs");
  command.add_flag("--int8", options.int8,
                   "Round the weights to 8 bits first; files of `ferrite gpt quantize` are so already");
  return file;
}

void check_model_file(const std::string& option, const std::string& file) {
  if (file.empty()) throw ValueError(fmt::format("[gpt] {}: needs the name of a model file", option));
  std::error_code not_there;
  if (std::filesystem::is_directory(file, not_there))
    throw ValueError(
        fmt::format("[gpt] {} {}: it is a folder: of one of transformers `ferrite gpt import --from {} --out "
                    "model.safetensors` makes a model file, of a run give its best.safetensors",
                    option, file, file));
}

nn::GptConfig read_model_config(const std::string& option, const std::string& file) {
  check_model_file(option, file);
  return train::read_gpt_config(file);
}

nn::Gpt<AnyBackend> load_model(AnyBackend& backend, const ModelOptions& options) {
  nn::Gpt<AnyBackend> model = train::load_gpt(backend, options.file);
  if (options.int8) model.quantize();
  return model;
}

SharedModel shared_model() {
  const auto file = shared_file("gpt/shakespeare.safetensors"),
             tokenizer = shared_file("gpt/shakespeare.bpe");
  for (const auto& path : {file, tokenizer})
    if (!std::filesystem::exists(path))
      throw ValueError(fmt::format(
          "[gpt] {}: the model that comes with ferrite is not there: give --model and --tokenizer, or the "
          "folder of ferrite's share/ in FERRITE_SHARE",
          path.string()));
  return {file.string(), tokenizer.string()};
}

void check_tokenizer(const std::string& file, const text::BytePairTokenizer& tokenizer,
                     const nn::GptConfig& model) {
  if (tokenizer.vocabulary_size() > model.vocab)
    throw ValueError(
        fmt::format("[gpt] {}: has {} tokens, and the model {}: give the tokenizer of the model's text", file,
                    tokenizer.vocabulary_size(), model.vocab));
  // Files of models may have some more rows than there are tokens, to make their number a round one.
  if (tokenizer.vocabulary_size() < model.vocab - model.vocab / 16)
    fmt::print(stderr,
               "warning: {} has {} tokens, and the model {}: is it the tokenizer of the model's text?\n",
               file, tokenizer.vocabulary_size(), model.vocab);
}

std::string describe(const nn::GptConfig& config) {
  return fmt::format("{} layers, {} heads, dim {}, context {}, {} tokens{}", config.layers, config.heads,
                     config.dim, config.context, config.vocab, config.quantized ? ", int8" : "");
}

}  // namespace ferrite::cli::gpt
