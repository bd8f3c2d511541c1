// config.json of Llamas, and of the models that have their parts: Mistral (with a window) and Qwen2 (with
// biases of queries, keys and values).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ferrite/nn/gpt_config.hpp"
#include "models/gpt/config_reader.hpp"

namespace ferrite::gpt {

enum class LlamaFamily : std::uint8_t { llama, mistral, qwen2 };

/// By 'model_type', or by the name of the class.
std::optional<LlamaFamily> llama_family(std::string_view type, std::string_view class_name);
/// Throws ParseError and ValueError as read_config does.
nn::GptConfig read_llama(const Config& config, LlamaFamily family);

/// Whether a model has the parts of one of them.
bool is_llama(const nn::GptConfig& model);
/// Throws ValueError for parts that none of the family has together.
std::string llama_text(const nn::GptConfig& model);

}  // namespace ferrite::gpt
