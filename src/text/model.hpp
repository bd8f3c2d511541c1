// BytePairModel: what a tokenizer computes with.
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "text/merge.hpp"
#include "text/word_cache.hpp"

namespace ferrite::text {

/// What a thread needs to encode. It remembers words, so it serves one model only.
struct Workspace {
  Merger merger;
  WordCache cache;
};

/// Immutable, but for the workspaces that wait for the next call.
class BytePairModel {
 public:
  /// `vocabulary` has all 256 bytes, ids below max_tokens and merges of its tokens.
  explicit BytePairModel(Vocabulary vocabulary);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const MergeRules& rules() const { return rules_; }

  /// Adds the tokens of text[begin, end) to `out`. Words begin at both places.
  void encode(std::string_view text, std::size_t begin, std::size_t end, std::vector<Token>& out) const;

 private:
  class BorrowedWorkspace;

  std::span<const Token> encode_word(std::string_view word, Merger& merger) const;

  Vocabulary vocabulary_;
  MergeRules rules_;
  /// The words that are one token, though merges do not lead to it.
  std::unordered_map<std::string_view, Token> whole_words_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> workspaces_;
};

}  // namespace ferrite::text
