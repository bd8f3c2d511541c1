// The safetensors format: a JSON header and one block of tensor bytes. Files are interchangeable with the
// `safetensors` Python package.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ferrite/io/host_tensor.hpp"

namespace ferrite {

struct SafeTensors {
  std::map<std::string, std::string> metadata;
  NamedTensors tensors;
};

/// Maps the file; tensors are views of it that keep it mapped (misaligned ones are copied). Throws IoError if
/// it cannot be opened, ParseError if it breaks the format or holds a dtype or rank that ferrite does not
/// support; the message names the file, the tensor and the rule.
FERRITE_API SafeTensors read_safetensors(const std::filesystem::path& path);
/// The same from memory; `name` stands for the file in messages. Tensors are copies.
FERRITE_API SafeTensors read_safetensors(std::span<const std::byte> bytes, std::string_view name);

/// Writes atomically (see AtomicFile), with tensors in the order of the Python package: widest dtype first,
/// then by name, so that each is aligned. Throws ValueError for names or metadata that are not UTF-8 and for
/// a tensor called "__metadata__"; IoError if writing fails.
FERRITE_API void write_safetensors(const std::filesystem::path& path, const SafeTensors& file);

}  // namespace ferrite
