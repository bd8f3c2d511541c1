// Fingerprint: 64 bits of FNV-1a, to tell the inputs of two runs apart.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/hash.hpp"

namespace ferrite::quantile_tokenizer {

class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) { hash_ = hash_bytes(bytes, hash_); }
  /// With its length, so that two texts cannot be taken for one.
  void add(std::string_view text) {
    const std::uint64_t size = text.size();
    add(std::as_bytes(std::span(&size, 1)));
    add(std::as_bytes(std::span(text)));
  }
  /// 16 hexadecimal digits.
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = hash_start;
};

}  // namespace ferrite::quantile_tokenizer
