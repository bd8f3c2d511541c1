// WordCache: the tokens of words that were seen. Text repeats its words, so most are merged only once.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "ferrite/text/bpe.hpp"

namespace ferrite::text {

/// A word of at most 15 bytes in two registers; its length is in the last byte.
struct WordKey {
  static constexpr std::size_t max_length = 15;
  std::uint64_t low = 0, high = 0;

  /// text[begin, begin + length)
  WordKey(std::string_view text, std::size_t begin, std::size_t length) {
    if (begin + 16 <= text.size()) {
      std::memcpy(&low, text.data() + begin, 8);
      std::memcpy(&high, text.data() + begin + 8, 8);
      low &= length >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * length) - 1;
      high &= length <= 8 ? 0 : (std::uint64_t{1} << 8 * (length - 8)) - 1;
    } else {
      std::memcpy(&low, text.data() + begin, length < 8 ? length : 8);
      if (length > 8) std::memcpy(&high, text.data() + begin + 8, length - 8);
    }
    high |= static_cast<std::uint64_t>(length) << 56;
  }
  WordKey() = default;
  friend bool operator==(const WordKey&, const WordKey&) = default;
};

/// One word in each slot; a new one takes the place of the old.
class WordCache {
 public:
  static constexpr std::size_t max_tokens = 11;
  struct alignas(64) Slot {
    WordKey key;
    std::uint32_t count = 0;
    std::array<Token, max_tokens> tokens{};
  };

  /// The slot that holds the word or could.
  Slot& slot(const WordKey& key) {
    const std::uint64_t mixed = (key.low ^ key.high * 0xD6E8FEB86659FD93u) * 0x9E3779B97F4A7C15u;
    return slots_[(mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15u >> (64 - slot_bits)];
  }

 private:
  static constexpr int slot_bits = 15;
  std::unique_ptr<Slot[]> slots_{new Slot[std::size_t{1} << slot_bits]};
};

}  // namespace ferrite::text
