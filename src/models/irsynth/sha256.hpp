// SHA-256 (FIPS 180-4): the names of structures, outputs and files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite::irsynth {

class FERRITE_API Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  /// The first `digits` of its 64 hexadecimal digits. Nothing can be added after it.
  std::string hex(std::size_t digits = 64);

 private:
  void take(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};
  std::uint64_t length_ = 0;
};

inline std::string sha256(std::string_view text, std::size_t digits = 64) {
  Sha256 hash;
  hash.add(text);
  return hash.hex(digits);
}

}  // namespace ferrite::irsynth
