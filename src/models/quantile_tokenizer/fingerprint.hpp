// Fingerprint: 64 bits of FNV-1a, which tell what a run was made of from what another one was.
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace ferrite::quantile_tokenizer {

class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) hash_ = (hash_ ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  }
  /// With its length, so that two texts cannot be taken for one.
  void add(std::string_view text) {
    const std::uint64_t size = text.size();
    add(std::as_bytes(std::span(&size, 1)));
    add(std::as_bytes(std::span(text)));
  }
  /// 16 hexadecimal digits.
  std::string text() const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash_));
    return digits;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace ferrite::quantile_tokenizer
