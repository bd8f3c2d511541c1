// Files of language models: the weights, and in the metadata the config, so that a file is all one needs.
//
//   train::save_gpt("model.safetensors", model);
//   nn::Gpt<B> model = train::load_gpt(backend, "run/best.safetensors");
//
// A trainer's checkpoints hold the config if its own says with_setting(train::gpt_setting, config.to_json()).
#pragma once

#include "ferrite/nn/gpt.hpp"
#include "ferrite/train/checkpoint.hpp"

namespace ferrite::train {

/// The name of the config in the metadata.
inline constexpr const char* gpt_setting = "gpt";

/// Throws IoError.
template <class B>
void save_gpt(const std::filesystem::path& path, nn::Gpt<B>& model) {
  write_weights(path, model.state(), {{gpt_setting, model.config().to_json()}});
}

/// Throws IoError; ParseError if the file is damaged, its metadata have no config, or one of a model that so
/// many elements cannot make up.
FERRITE_API nn::GptConfig read_gpt_config(const std::filesystem::path& path);

/// From a checkpoint, or from what save_gpt wrote. Throws as read_gpt_config and Module::load_state do.
template <class B>
nn::Gpt<B> load_gpt(B& backend, const std::filesystem::path& path) {
  auto model = nn::Gpt<B>::blank(backend, read_gpt_config(path));
  model.load_state(read_weights(path));
  return model;
}

}  // namespace ferrite::train
