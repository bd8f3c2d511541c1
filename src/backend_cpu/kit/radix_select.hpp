// Radix select: the values at many ranks of one array of unsigned keys, without sorting it. Each round counts
// the keys by their leading digit, keeps those of the digits that hold a wanted rank, grouped by digit, and
// continues inside the groups.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace ferrite::cpu {

/// Unsigned keys in the order of the values; -0 and 0 have one key. Not for NaN.
template <class T>
auto ordered_key(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int top = 8 * sizeof(T) - 1;
  const Bits bits = std::bit_cast<Bits>(value + T{0});
  return bits ^ ((Bits{0} - (bits >> top)) | Bits{1} << top);
}
template <class T, class Bits>
T from_ordered_key(Bits key) {
  constexpr int top = 8 * sizeof(T) - 1;
  return std::bit_cast<T>(key >> top ? key ^ Bits{1} << top : static_cast<Bits>(~key));
}

/// Holds the scratch memory of selections on one thread.
template <class Key>
class RadixSelect {
 public:
  /// found[i] = the key of rank ranks[i] among `keys`; ranks ascend and are below keys.size(). Reorders keys.
  void select(std::span<Key> keys, std::span<const std::int64_t> ranks, Key* found) {
    if (scratch_.size() < keys.size()) scratch_.resize(keys.size());
    select(keys, std::span(scratch_).first(keys.size()), 0, ranks, found);
  }

 private:
  struct Group {
    std::uint32_t digit;
    std::int64_t begin, size;  // in ranks of the whole array
    std::size_t first_rank, rank_count;
  };

  void select(std::span<Key> keys, std::span<Key> scratch, std::int64_t base,
              std::span<const std::int64_t> ranks, Key* found) {
    if (keys.size() <= 64) {
      std::sort(keys.begin(), keys.end());
      for (std::size_t i = 0; i < ranks.size(); ++i)
        found[i] = keys[static_cast<std::size_t>(ranks[i] - base)];
      return;
    }
    Key low = keys[0], high = keys[0];
    for (const Key key : keys) {
      low = std::min(low, key);
      high = std::max(high, key);
    }
    if (low == high) return static_cast<void>(std::fill_n(found, ranks.size(), low));
    // Skip leading bits that all keys share. Few keys need few counters.
    const int varying = std::bit_width(static_cast<Key>(low ^ high));
    const int shift = std::max(0, varying - (keys.size() > (1u << 17)   ? 16
                                             : keys.size() > (1u << 12) ? 11
                                                                        : 8));
    const Key mask = (varying < static_cast<int>(8 * sizeof(Key)) ? Key{1} << varying : Key{0}) - 1;
    const auto digit = [=](Key key) { return static_cast<std::uint32_t>((key & mask) >> shift); };
    const std::vector<Group> groups =
        find_groups(keys, base, ranks, std::size_t{1} << (varying - shift), digit);

    // Two passes over the chosen keys: first packed in order (no branch, and most keys drop out), then
    // placed.
    std::size_t kept = 0;
    for (const Key key : keys) {
      scratch[kept] = key;
      kept += wanted_[digit(key)];
    }
    std::size_t place = 0;
    for (const Group& group : groups) {
      counts_[group.digit] = static_cast<std::uint32_t>(place);
      place += static_cast<std::size_t>(group.size);
    }
    for (std::size_t i = 0; i < kept; ++i) keys[counts_[digit(scratch[i])]++] = scratch[i];

    place = 0;
    for (const Group& group : groups) {
      const auto size = static_cast<std::size_t>(group.size);
      select(keys.subspan(place, size), scratch.subspan(place, size), group.begin,
             ranks.subspan(group.first_rank, group.rank_count), found + group.first_rank);
      place += size;
    }
  }

  /// The digits that hold a wanted rank, in order; marks them in wanted_.
  template <class Digit>
  std::vector<Group> find_groups(std::span<const Key> keys, std::int64_t base,
                                 std::span<const std::int64_t> ranks, std::size_t digits, Digit digit) {
    counts_.assign(digits, 0);
    wanted_.assign(digits, 0);
    for (const Key key : keys) ++counts_[digit(key)];
    std::vector<Group> groups;
    std::int64_t begin = base;
    std::uint32_t d = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      while (begin + counts_[d] <= ranks[i]) begin += counts_[d++];
      if (groups.empty() || groups.back().digit != d) groups.push_back({d, begin, counts_[d], i, 0});
      ++groups.back().rank_count;
      wanted_[d] = 1;
    }
    return groups;
  }

  std::vector<Key> scratch_;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint8_t> wanted_;
};

}  // namespace ferrite::cpu
