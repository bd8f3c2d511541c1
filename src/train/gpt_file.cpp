#include "ferrite/train/gpt_file.hpp"

#include <fmt/format.h>

namespace ferrite::train {

nn::GptConfig read_gpt_config(const std::filesystem::path& path) {
  const auto settings = read_settings(path);
  const auto found = settings.find(gpt_setting);
  if (found == settings.end())
    throw ParseError(fmt::format(
        "[load_gpt] {}: has no config in its metadata, under '{}': of weights of transformers `ferrite gpt "
        "import` makes a model file; a program writes one with train::save_gpt, or by a trainer whose config "
        "has with_setting(train::gpt_setting, ...)",
        path.string(), gpt_setting));
  return nn::GptConfig::from_json(found->second, path.string());
}

}  // namespace ferrite::train
