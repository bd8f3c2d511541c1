// PairTable: the rank of the merge of two tokens.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferrite::text {

using Rank = std::uint32_t;
/// Of tokens that do not merge.
inline constexpr Rank no_rank = 0xFFFFFFFF;
/// Ids and ranks share one word of 64 bits: ids have 21 of them, ranks 22.
inline constexpr std::uint32_t max_tokens = (1u << 21) - 1;
inline constexpr std::uint32_t max_ranks = 1u << 22;

/// Open addressing with linear probing. Eight bytes a slot keep the whole of GPT-2's merges in one megabyte.
class PairTable {
 public:
  explicit PairTable(std::size_t pairs)
      : slots_(std::bit_ceil(pairs * 2 + 2), empty), shift_(64 - std::countr_zero(slots_.size())) {}

  /// The first rank of a pair stays.
  void insert(std::uint32_t left, std::uint32_t right, Rank rank) {
    const std::uint64_t key = key_of(left, right);
    std::size_t slot = home(key);
    while (slots_[slot] != empty && slots_[slot] >> rank_bits != key) slot = (slot + 1) & (slots_.size() - 1);
    if (slots_[slot] == empty) slots_[slot] = key << rank_bits | rank;
  }
  Rank find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t slot = home(key);; slot = (slot + 1) & (slots_.size() - 1)) {
      const std::uint64_t found = slots_[slot];
      if (found >> rank_bits == key) return static_cast<Rank>(found & (max_ranks - 1));
      if (found == empty) return no_rank;
    }
  }

 private:
  static constexpr int rank_bits = 22, id_bits = 21;
  static constexpr std::uint64_t empty = ~std::uint64_t{0};  // no token has the id max_tokens

  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << id_bits | right;
  }
  /// The upper bits of a product depend on all bits of the key.
  std::size_t home(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<std::uint64_t> slots_;
  int shift_;
};

}  // namespace ferrite::text
