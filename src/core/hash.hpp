// Hashes that stand in files and in names of files: the same on every machine, and they must stay so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ferrite {

inline constexpr std::uint64_t hash_start = 0xcbf29ce484222325;

/// FNV-1a. `hash` continues an earlier call, or is another start.
inline std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t hash = hash_start) {
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}
inline std::uint64_t hash_text(std::string_view text, std::uint64_t hash = hash_start) {
  return hash_bytes(std::as_bytes(std::span(text)), hash);
}

/// A whole word in one step.
constexpr std::uint64_t hash_word(std::uint64_t word, std::uint64_t hash) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

}  // namespace ferrite
