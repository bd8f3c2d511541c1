#include "text/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "io/format.hpp"
#include "text/unicode_classes.hpp"

namespace ferrite::text {
namespace {

bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Of a code point below U+0800.
std::string to_utf8(unsigned c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

}  // namespace

ByteAlphabet::ByteAlphabet() {
  by_letter.fill(-1);
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned letter = is_printable(byte) ? byte : next++;
    letters[byte] = to_utf8(letter);
    by_letter[letter] = static_cast<std::int16_t>(byte);
  }
  std::size_t id = 0;
  for (const std::int16_t byte : by_letter)
    if (byte >= 0) by_id[id++] = static_cast<unsigned char>(byte);
}

std::string ByteAlphabet::write(std::string_view bytes) const {
  std::string out;
  for (const char byte : bytes) out += letters[static_cast<unsigned char>(byte)];
  return out;
}

bool ByteAlphabet::read(std::string_view text, std::string& bytes) const {
  bytes.clear();
  while (!text.empty()) {
    const auto [letter, length] = decode_utf8(text);
    if (letter >= by_letter.size() || by_letter[letter] < 0) return false;
    bytes += static_cast<char>(by_letter[letter]);
    text.remove_prefix(length);
  }
  return true;
}

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

Vocabulary bytes_only() {
  Vocabulary out;
  for (const unsigned char byte : byte_alphabet().by_id) out.tokens.emplace_back(1, static_cast<char>(byte));
  return out;
}

TokenIds token_ids(const Vocabulary& vocabulary) {
  TokenIds ids;
  ids.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (!vocabulary.tokens[id].empty()) ids.emplace(vocabulary.tokens[id], static_cast<Token>(id));
  return ids;
}

Token add_merge(Vocabulary& vocabulary, TokenIds& ids, Token left, Token right) {
  std::string bytes =
      vocabulary.tokens[static_cast<std::size_t>(left)] + vocabulary.tokens[static_cast<std::size_t>(right)];
  const auto [found, is_new] = ids.emplace(std::move(bytes), static_cast<Token>(vocabulary.tokens.size()));
  if (is_new) vocabulary.tokens.push_back(found->first);
  vocabulary.merges.push_back({left, right, static_cast<Rank>(vocabulary.merged.size())});
  vocabulary.merged.push_back(found->second);
  return found->second;
}

void add_special_tokens(Vocabulary& vocabulary, const std::vector<std::string>& texts) {
  const auto is_token = [&](const std::string& text) {
    return std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text) != vocabulary.tokens.end();
  };
  std::size_t id = 0;
  for (const std::string& text : texts) {
    const auto refuse = [&](std::string_view rule) {
      throw ValueError(fmt::format("[special tokens] {}: {}", io_detail::in_quotes(text), rule));
    };
    if (text.empty()) refuse("must not be empty");
    if (vocabulary.special.contains(text)) refuse("is given twice");
    if (is_token(text)) refuse("is a token of the vocabulary already");
    while (id < vocabulary.tokens.size() && !vocabulary.tokens[id].empty()) ++id;
    if (id >= max_tokens) refuse("the vocabulary is full");
    if (id == vocabulary.tokens.size()) vocabulary.tokens.emplace_back();
    vocabulary.tokens[id] = text;
    vocabulary.special.emplace(text, static_cast<Token>(id));
  }
}

}  // namespace ferrite::text
