// NumPy's .npz format: a zip archive of .npy members.
#pragma once

#include <filesystem>
#include <string_view>

#include "ferrite/io/host_tensor.hpp"

namespace ferrite {

/// Reads stored and deflated members; zip64 where needed. Keys are the member names without ".npy"; they
/// never become paths. Checksums are verified. Memory is bounded: members may not overlap, and a deflated one
/// may not claim more than 1032 times its packed size, the maximum of deflate. Throws as read_npy does,
/// naming the member.
FERRITE_API NamedTensors read_npz(const std::filesystem::path& path);
/// The same from memory; `name` stands for the file in messages. Tensors are copies.
FERRITE_API NamedTensors read_npz(std::span<const std::byte> bytes, std::string_view name);

/// Writes stored members, atomically. Throws DTypeError for bf16, ValueError for a name that is empty, not
/// UTF-8 or longer than 65,000 bytes.
FERRITE_API void write_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace ferrite
