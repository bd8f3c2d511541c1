// Files of prior-fitted networks: the weights, and in the metadata the config, so that a file is all one
// needs. And files of contexts, from which new rows are predicted without the train rows.
//
//   pfn::save("model.safetensors", model);
//   nn::Pfn<B> model = pfn::load(backend, "model.safetensors");
#pragma once

#include "ferrite/models/pfn/network.hpp"
#include "ferrite/train/checkpoint.hpp"

namespace ferrite::pfn {

/// The name of the config in the metadata. A trainer's checkpoints hold it if its config says
/// with_setting(pfn::setting, config.to_json()).
inline constexpr const char *setting = "pfn", *context_setting = "pfn_context";

/// Floating tensors, rounded to a floating dtype. Throws DTypeError for another one.
FERRITE_API NamedTensors rounded(const NamedTensors& tensors, DType dtype);
/// Throws as load_context does.
FERRITE_API void check_context_file(const std::filesystem::path& path, const Config& config);

/// With a dtype, which must be floating, the weights are rounded to it on their way: bf16 halves the file.
/// Throws IoError, and DTypeError for another dtype.
template <class B>
void save(const std::filesystem::path& path, Network<B>& model, std::optional<DType> dtype = std::nullopt) {
  const NamedTensors weights = dtype ? rounded(model.state(), *dtype) : model.state();
  train::write_weights(path, weights, {{setting, model.config().to_json()}});
}
/// The config in a file that `save` or a trainer wrote. Throws IoError; ParseError if the file is damaged or
/// its metadata have no config.
FERRITE_API Config read_config(const std::filesystem::path& path);
/// Throws as read_config and Module::load_state do.
template <class B>
Network<B> load(B& backend, const std::filesystem::path& path) {
  Rng rng(0);
  Network<B> model(backend, read_config(path), rng);
  model.load_state(train::read_weights(path));
  return model;
}

/// The file names the network's config, not its weights: keep both files together. Throws IoError.
template <class B>
void save_context(const std::filesystem::path& path, const Context<B>& context, const Config& config) {
  train::write_weights(path, context.state(), {{context_setting, config.to_json()}});
}
/// Throws IoError; ParseError if the file is damaged or is not a context of a network with this config.
template <class B>
Context<B> load_context(B& backend, const std::filesystem::path& path, const Config& config) {
  check_context_file(path, config);
  return Context<B>::from_state(backend, train::read_weights(path));
}

}  // namespace ferrite::pfn
