// config.json of Hugging Face's transformers.
#pragma once

#include <filesystem>
#include <string>

#include "ferrite/nn/gpt.hpp"

namespace ferrite::gpt {

/// The sizes of a GPT-2. Throws IoError; ParseError for what is not a config; ValueError for a model that
/// ferrite does not have, which says what it would need.
nn::GptConfig read_config(const std::filesystem::path& path);

/// As save_pretrained of GPT2LMHeadModel writes it.
std::string config_text(const nn::GptConfig& model);

}  // namespace ferrite::gpt
