// The safetensors format: a JSON header and one block of tensor bytes. Files are interchangeable with the
// `safetensors` Python package.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ferrite/core/array.hpp"
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

/// A tensor whose bytes come when `load` is called, so that files larger than memory can be converted tensor
/// by tensor.
struct LazyTensor {
  Meta meta;
  std::function<HostTensor()> load;
};

struct LazySafeTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, LazyTensor, std::less<>> tensors;
};

/// As read_safetensors, with one difference: bytes of misaligned and bool tensors are copied and checked when
/// they are loaded. Each tensor keeps the file mapped.
FERRITE_API LazySafeTensors open_safetensors(const std::filesystem::path& path);

/// The bytes that are written, and of how many.
using BytesWritten = std::function<void(std::int64_t done, std::int64_t total)>;

/// As write_safetensors; holds one tensor at a time. `load` is called once for each, in the order of the
/// file, and `progress` after each. What `load` throws ends the write and leaves no file; a tensor of another
/// dtype or shape than announced is a ValueError.
FERRITE_API void stream_safetensors(const std::filesystem::path& path, const LazySafeTensors& file,
                                    const BytesWritten& progress = {});

}  // namespace ferrite
