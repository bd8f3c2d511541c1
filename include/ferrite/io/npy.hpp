// NumPy's .npy format: one array per file.
#pragma once

#include <filesystem>
#include <string_view>

#include "ferrite/io/host_tensor.hpp"

namespace ferrite {

/// Reads versions 1.0, 2.0 and 3.0, C order (a view of the mapped file) and Fortran order (copied to C
/// order). Throws IoError if the file cannot be opened; ParseError naming the file, the place and the rule if
/// it breaks the format, is big-endian, has a dtype or rank that ferrite does not support, or has bytes after
/// the array.
FERRITE_API HostTensor read_npy(const std::filesystem::path& path);
/// The same from memory; `name` stands for the file in messages. The tensor is a copy.
FERRITE_API HostTensor read_npy(std::span<const std::byte> bytes, std::string_view name);

/// Writes version 1.0 in C order, atomically. bf16 is a DTypeError: NumPy has no such dtype, cast to f32.
FERRITE_API void write_npy(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace ferrite
