// config.json of Hugging Face's transformers.
#pragma once

#include <filesystem>
#include <string>

#include "ferrite/nn/gpt.hpp"

namespace ferrite::gpt {

/// The sizes and parts of a GPT-2, a Llama, a Mistral or a Qwen2. Throws IoError; ParseError for what is not
/// a config; ValueError for a model that ferrite does not have, which says in what it differs.
nn::GptConfig read_config(const std::filesystem::path& path);

/// As save_pretrained of GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM or Qwen2ForCausalLM writes it.
/// Throws ValueError for a model that is none of these.
std::string config_text(const nn::GptConfig& model);

/// As transformers writes it: "float32".
std::string dtype_name(DType dtype);

}  // namespace ferrite::gpt
