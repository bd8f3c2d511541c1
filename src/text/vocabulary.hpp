// The parts of a tokenizer as files hold them.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "ferrite/text/bpe.hpp"
#include "text/pair_table.hpp"

namespace ferrite::text {

struct Merge {
  Token left, right;
  Rank rank;
};

struct Vocabulary {
  std::vector<std::string> tokens;  // by id, with the text of special tokens; empty if no token has the id
  SpecialTokens special;
  std::vector<Merge> merges;
  std::vector<Token> merged;  // what merges of a rank give
  /// Ranks are ids of tokens, and the merges are all pairs that form one, as in .tiktoken files.
  bool ranks_are_ids = false;
  /// A word that is a token is that token, even if no merges lead to it.
  bool whole_words = false;

  /// The text of a special token may be that of an ordinary one.
  bool is_special(std::size_t id) const {
    const auto found = special.find(tokens[id]);
    return found != special.end() && static_cast<std::size_t>(found->second) == id;
  }
};

/// GPT-2 writes bytes as letters: printable ones as themselves, the others as U+0100 and what follows. The
/// ids of the bytes have the order of these letters.
struct ByteAlphabet {
  ByteAlphabet();
  std::array<std::string, 256> letters;       // by byte, in UTF-8
  std::array<unsigned char, 256> by_id;       // the byte of an id
  std::array<std::int16_t, 0x144> by_letter;  // the byte of a code point, or -1

  std::string write(std::string_view bytes) const;
  /// False if `text` has a letter that stands for no byte.
  bool read(std::string_view text, std::string& bytes) const;
};
const ByteAlphabet& byte_alphabet();

/// A vocabulary of the 256 bytes in GPT-2's order.
Vocabulary bytes_only();
/// Finds tokens by their bytes.
using TokenIds = std::unordered_map<std::string, Token>;
TokenIds token_ids(const Vocabulary& vocabulary);
/// Adds a merge of the next rank. Its result is a new token, unless one has these bytes already.
Token add_merge(Vocabulary& vocabulary, TokenIds& ids, Token left, Token right);
/// Gives special tokens the lowest free ids. Throws ValueError for texts that are empty, repeated or tokens.
void add_special_tokens(Vocabulary& vocabulary, const std::vector<std::string>& texts);

}  // namespace ferrite::text
