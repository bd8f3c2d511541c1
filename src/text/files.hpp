// The three formats of vocabularies.
#pragma once

#include "io/format.hpp"
#include "text/model.hpp"

namespace ferrite::text {

using io_detail::Source;

/// Readers give vocabularies that a BytePairModel takes, or reject the file (ParseError). Only a
/// tokenizer.json has special tokens.
Vocabulary read_merges(const Source& source, std::string_view content);
Vocabulary read_ranks(const Source& source, std::string_view content);
Vocabulary read_tokenizer_json(const Source& source, std::string_view content);

/// Writers throw ValueError if the format cannot hold the vocabulary.
std::string write_merges(const BytePairModel& model);
std::string write_ranks(const BytePairModel& model);
std::string write_tokenizer_json(const BytePairModel& model);

/// The merges by rank. A vocabulary of ranks has none of its own: for each token, the two parts that merge
/// into it last; tokens that merges do not lead to have none.
std::vector<Merge> listed_merges(const BytePairModel& model);

/// Puts tokens of any ids in their places.
class TokenPlaces {
 public:
  /// For at most `count` tokens. Files of few tokens with high ids are refused: they would fill the memory.
  TokenPlaces(const Source& source, std::size_t count) : source_(source), limit_(2 * count + 1000) {}
  /// Rejects ids that are too high or taken.
  void put(std::string_view place, std::uint64_t id, std::string bytes);
  /// A token that `ids` finds: rejects bytes that another one has.
  void add(std::string_view place, std::uint64_t id, std::string bytes);
  /// Rejects vocabularies without tokens for all 256 bytes.
  void check_bytes() const;

  std::vector<std::string> tokens;  // by id
  TokenIds ids;

 private:
  const Source& source_;
  std::size_t limit_;
};

}  // namespace ferrite::text
