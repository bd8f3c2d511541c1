// Where the tensors of a model of Hugging Face are.
#pragma once

#include <filesystem>
#include <optional>

#include "models/gpt/tensors.hpp"

namespace ferrite::gpt {

/// `from` is a folder with model.safetensors or model.safetensors.index.json, or one .safetensors file.
/// The config.json of that folder, or beside that file, if there is one.
std::optional<std::filesystem::path> find_config(const std::filesystem::path& from);

/// One file, or all shards. Throws IoError if they are not there, ParseError for a bad index.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& from);

/// The tensors of all files, by their names without "transformer." or "model.". Throws ParseError for bad
/// files, and if a tensor is there twice.
LazyTensors open_weights(const std::vector<std::filesystem::path>& files);

}  // namespace ferrite::gpt
