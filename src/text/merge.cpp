#include "text/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "ferrite/core/error.hpp"

namespace ferrite::text {
namespace {

std::size_t index(char byte) { return static_cast<unsigned char>(byte); }

Rank find(const MergeRules& rules, Token left, Token right, Rank limit) {
  const Rank rank = rules.pairs.find(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right));
  return rank < limit ? rank : no_rank;
}

Rank find_bytes(const MergeRules& rules, char left, char right, Rank limit) {
  const Rank rank = rules.byte_pairs[index(left) << 8 | index(right)];
  return rank < limit ? rank : no_rank;
}

/// A vector register. At the library's level of optimisation compilers do not find the vectors by themselves.
using Lanes = std::uint32_t __attribute__((vector_size(16)));
constexpr std::size_t block = sizeof(Lanes) / sizeof(std::uint32_t);

/// The lowest of the first `n` keys; those up to the end of the block are read too.
std::uint32_t lowest_of(const std::uint32_t* keys, std::size_t n) {
  Lanes lowest = Lanes{} + no_rank;
  for (std::size_t i = 0; i < n; i += block) {
    Lanes lanes;
    std::memcpy(&lanes, keys + i, sizeof lanes);
    lowest = lanes < lowest ? lanes : lowest;
  }
  return std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3]));
}

}  // namespace

MergeRules::MergeRules(std::span<const Merge> merges, std::vector<Token> merged_tokens,
                       const std::array<Token, 256>& byte_tokens)
    : pairs(merges.size()), merged(std::move(merged_tokens)), bytes(byte_tokens), byte_pairs(256 * 256) {
  for (const Merge& merge : merges)
    pairs.insert(static_cast<std::uint32_t>(merge.left), static_cast<std::uint32_t>(merge.right), merge.rank);
  for (std::size_t i = 0; i < byte_pairs.size(); ++i)
    byte_pairs[i] = find(*this, bytes[i >> 8], bytes[i & 255], no_rank);
}

std::span<const Token> Merger::merge(const MergeRules& rules, std::string_view word, Rank limit) {
  return word.size() <= longest_searched ? merge_by_search(rules, word, limit)
                                         : merge_by_heap(rules, word, limit);
}

std::span<const Token> Merger::merge_by_search(const MergeRules& rules, std::string_view word, Rank limit) {
  constexpr std::uint32_t none = no_rank;
  const std::size_t n = word.size();
  // The merge of the part at i and the next one: the lowest key has the lowest rank, and then the leftmost
  // place. Parts that were merged into another one have none, and so has what fills the last block.
  std::array<std::uint32_t, longest_searched> keys;
  std::array<Token, longest_searched + 1> tokens;
  std::array<std::uint8_t, longest_searched + 1> next, previous;
  const auto key = [](Rank rank, std::size_t at) {
    return rank == no_rank ? none : rank << place_bits | static_cast<std::uint32_t>(at);
  };
  for (std::size_t i = 0; i < n; ++i) {
    tokens[i] = rules.bytes[index(word[i])];
    next[i] = static_cast<std::uint8_t>(i + 1);
    previous[i + 1] = static_cast<std::uint8_t>(i);
    keys[i] = i + 1 < n ? key(find_bytes(rules, word[i], word[i + 1], limit), i) : none;
  }
  std::fill(keys.begin() + n, keys.begin() + (n + block - 1) / block * block, none);
  for (std::uint32_t lowest; (lowest = lowest_of(keys.data(), n)) != none;) {
    const std::size_t at = lowest & (longest_searched - 1), taken = next[at], after = next[taken];
    tokens[at] = rules.merged[lowest >> place_bits];
    next[at] = static_cast<std::uint8_t>(after);
    previous[after] = static_cast<std::uint8_t>(at);
    keys[taken] = none;
    keys[at] = after < n ? key(find(rules, tokens[at], tokens[after], limit), at) : none;
    if (const std::size_t before = previous[at]; at > 0)
      keys[before] = key(find(rules, tokens[before], tokens[at], limit), before);
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; i = next[i]) tokens_[count++] = tokens[i];
  return {tokens_.data(), count};
}

std::span<const Token> Merger::merge_by_heap(const MergeRules& rules, std::string_view word, Rank limit) {
  if (word.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw ValueError(fmt::format(
        "[encode] a word of {} bytes: the longest has 2^31 - 1, so cut the text before", word.size()));
  }
  const auto n = static_cast<std::int32_t>(word.size());
  parts_.resize(word.size());
  heap_.clear();
  for (std::int32_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    parts_[at] = {rules.bytes[index(word[at])], 1, i - 1};
    if (i + 1 == n) break;
    const Rank rank = find_bytes(rules, word[at], word[at + 1], limit);
    if (rank != no_rank) heap_.push_back({rank, i});
  }
  std::make_heap(heap_.begin(), heap_.end());
  const auto part = [&](std::int32_t i) -> Part& { return parts_[static_cast<std::size_t>(i)]; };
  const auto rank_at = [&](std::int32_t i) {
    const std::int32_t next = i + part(i).length;
    return next < n ? find(rules, part(i).token, part(next).token, limit) : no_rank;
  };
  const auto push = [&](std::int32_t i) {
    if (const Rank rank = rank_at(i); rank != no_rank) {
      heap_.push_back({rank, i});
      std::push_heap(heap_.begin(), heap_.end());
    }
  };
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    // Earlier merges may have taken one of the two tokens.
    if (part(best.at).length == 0 || rank_at(best.at) != best.rank) continue;
    Part& merged = part(best.at);
    Part& taken = part(best.at + merged.length);
    merged.token = rules.merged[best.rank];
    merged.length += taken.length;
    taken.length = 0;
    if (const std::int32_t next = best.at + merged.length; next < n) part(next).left = best.at;
    push(best.at);
    if (merged.left >= 0) push(merged.left);
  }
  tokens_.resize(std::max(tokens_.size(), word.size()));
  std::size_t count = 0;
  for (std::int32_t i = 0; i < n; i += part(i).length) tokens_[count++] = part(i).token;
  return {tokens_.data(), count};
}

}  // namespace ferrite::text
