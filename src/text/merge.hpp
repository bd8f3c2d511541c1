// Byte-pair merging of one word: of all neighbours that merge, those of the lowest rank do, the leftmost
// first, until none are left.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "text/vocabulary.hpp"

namespace ferrite::text {

/// The result of all merges of `rank` is merged[rank].
struct MergeRules {
  MergeRules(std::span<const Merge> merges, std::vector<Token> merged, const std::array<Token, 256>& bytes);

  PairTable pairs;
  std::vector<Token> merged;
  std::array<Token, 256> bytes;
  std::vector<Rank> byte_pairs;  // the ranks of all pairs of bytes: every word begins with them
};

/// The memory that merging needs; one for each thread.
class Merger {
 public:
  /// The tokens of a word, valid until the next call. Only ranks below `limit` merge. Time is n log n of the
  /// length. Throws ValueError for words of 2^31 bytes or more.
  std::span<const Token> merge(const MergeRules& rules, std::string_view word, Rank limit = no_rank);

 private:
  /// Up to this many bytes a search for the lowest rank is faster than a heap. Ranks and places share 32
  /// bits.
  static constexpr std::size_t longest_searched = 128;
  static constexpr int place_bits = 7;
  static_assert(longest_searched == 1u << place_bits && max_ranks <= 1u << (31 - place_bits));

  std::span<const Token> merge_by_search(const MergeRules& rules, std::string_view word, Rank limit);
  std::span<const Token> merge_by_heap(const MergeRules& rules, std::string_view word, Rank limit);

  /// A token of a long word and the bytes from its start to the next one's. Those that were merged into their
  /// left neighbour have length 0.
  struct Part {
    Token token;
    std::int32_t length;
    std::int32_t left;
  };
  struct Candidate {
    Rank rank;
    std::int32_t at;
    /// Of a heap whose top is the lowest rank, and of these the leftmost.
    friend bool operator<(Candidate a, Candidate b) {
      return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
    }
  };

  std::vector<Token> tokens_ = std::vector<Token>(longest_searched);
  std::vector<Part> parts_;
  std::vector<Candidate> heap_;
};

}  // namespace ferrite::text
