#include "ferrite/train/gpt_file.hpp"

#include <fmt/format.h>

#include "ferrite/io/safetensors.hpp"

namespace ferrite::train {
namespace {

/// A damaged config may ask for a model that no memory holds: it is refused before it is built.
void check_sizes(const std::filesystem::path& path, const nn::GptConfig& config,
                 const NamedTensors& tensors) {
  std::int64_t elements = 0;
  for (const auto& entry : tensors) elements += entry.second.numel();
  const auto refuse = [&](const std::string& claim) {
    throw ParseError(fmt::format(
        "[load_gpt] {}: its config says {}, and the file has {} tensors of {} elements: it is damaged",
        path.string(), claim, tensors.size(), elements));
  };
  if (config.layers > static_cast<std::int64_t>(tensors.size()))
    refuse(fmt::format("{} layers", config.layers));
  const auto needs = [&](double count, const char* what) {
    if (count * static_cast<double>(config.dim) > static_cast<double>(elements))
      refuse(fmt::format("{:.0f} {} of {} features", count, what, config.dim));
  };
  needs(static_cast<double>(config.vocab), "tokens");
  if (!config.rope) needs(static_cast<double>(config.context), "positions");
  needs(static_cast<double>(config.hidden), "hidden units");
  needs(static_cast<double>(config.heads) * static_cast<double>(config.head_width), "elements of heads");
}

}  // namespace

nn::GptConfig read_gpt_config(const std::filesystem::path& path) {
  const SafeTensors file = read_safetensors(path);
  const auto found = file.metadata.find(gpt_setting);
  if (found == file.metadata.end())
    throw ParseError(fmt::format(
        "[load_gpt] {}: has no config in its metadata, under '{}': of weights of transformers `ferrite gpt "
        "import` makes a model file; a program writes one with train::save_gpt, or by a trainer whose config "
        "has with_setting(train::gpt_setting, ...)",
        path.string(), gpt_setting));
  const nn::GptConfig config = nn::GptConfig::from_json(found->second, path.string());
  check_sizes(path, config, file.tensors);
  return config;
}

}  // namespace ferrite::train
