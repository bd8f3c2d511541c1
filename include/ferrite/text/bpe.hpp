// BytePairTokenizer: text to tokens and back as GPT-2 does it, with the ids of tiktoken and of Hugging Face's
// tokenizers.
//
//   const auto tokenizer = text::BytePairTokenizer::load("vocab.bpe");
//   const std::vector<text::Token> ids = tokenizer.encode("Hello world");   // 15496 995
//   const std::string back = tokenizer.decode(ids);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::text {

using Token = std::int32_t;
/// Special tokens by their text.
using SpecialTokens = std::map<std::string, Token, std::less<>>;

/// What the text of a special token means in the text to encode. Text from strangers should not be able to
/// write special tokens.
enum class SpecialText : std::uint8_t { ordinary, recognised };

class BytePairModel;

/// A value that is cheap to copy; all members may be called from several threads at once. Words are cut by
/// GPT-2's pattern with the classes of Unicode 16. Every text of bytes can be encoded, and decoding gives the
/// same bytes: for UTF-8 the ids are those of tiktoken's encode_ordinary; bytes that are not UTF-8 count as
/// symbols, one by one.
class FERRITE_API BytePairTokenizer {
 public:
  /// Reads one of three formats, told apart by their content:
  /// - merges (vocab.bpe, merges.txt): ids are 0 to 255 for the bytes in GPT-2's order, then one for each
  ///   merge;
  /// - ranks (.tiktoken): whichever neighbours form a token merge, the token of the lowest rank first. The
  ///   file does not name its pattern: only those of GPT-2's (r50k, p50k) give the ids of tiktoken;
  /// - tokenizer.json of a byte-level BPE without normalizer, truncation, padding and tokens that are added
  ///   at the ends.
  /// `special_tokens` get the lowest free ids, in this order; a tokenizer.json brings its own. Throws IoError
  /// if the file cannot be read; ParseError if it breaks its format, is cut short or asks for something that
  /// is not supported, with the file, the place and the rule; ValueError for special tokens that are empty,
  /// repeated or in the vocabulary.
  static BytePairTokenizer load(const std::filesystem::path& path,
                                const std::vector<std::string>& special_tokens = {"<|endoftext|>"});
  /// The same from memory; `name` stands for the file in messages.
  static BytePairTokenizer parse(std::string_view content, std::string_view name,
                                 const std::vector<std::string>& special_tokens = {"<|endoftext|>"});
  /// Writes atomically, in the format of the name: .tiktoken, .json (a tokenizer.json), else merges. Only a
  /// tokenizer.json holds the special tokens. Throws ValueError if the format cannot hold these ids (the
  /// message says which can), IoError if writing fails.
  void save(const std::filesystem::path& path) const;

  std::vector<Token> encode(std::string_view text, SpecialText special = SpecialText::ordinary) const;
  /// Adds to the end of `out`.
  void encode_to(std::string_view text, std::vector<Token>& out,
                 SpecialText special = SpecialText::ordinary) const;
  /// The tokens of each text, on all threads of the pool; long texts are shared between threads too. The
  /// result is that of `encode`, for any number of threads.
  std::vector<std::vector<Token>> encode_all(std::span<const std::string_view> texts,
                                             SpecialText special = SpecialText::ordinary) const;

  /// The bytes of all tokens; those of special tokens are their text. Parts of a sequence of tokens may not
  /// be UTF-8: see TextStream. Throws ValueError for an id that no token has.
  std::string decode(std::span<const Token> tokens) const;
  /// The bytes of one token, which live as long as the tokenizer or a copy of it; errors as `decode`.
  std::string_view bytes_of(Token token) const;

  /// The highest id + 1.
  std::int64_t vocabulary_size() const;
  const SpecialTokens& special_tokens() const;
  /// The id of a special token. Throws ValueError if there is none of this text, with those that there are.
  Token special_token(std::string_view text) const;

  /// For those who build the parts: `load`, and BytePairTrainer.
  explicit BytePairTokenizer(std::shared_ptr<const BytePairModel> model) : model_(std::move(model)) {}

 private:
  std::shared_ptr<const BytePairModel> model_;
};

/// The text of tokens that come one by one, without cutting a character: bytes that may become a character
/// wait for the tokens that complete it. All parts together are the bytes that `decode` gives.
class FERRITE_API TextStream {
 public:
  explicit TextStream(BytePairTokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  /// What can be shown after this token; may be empty. Throws ValueError for an id that no token has.
  std::string push(Token token);
  /// The bytes that wait: the start of a character that was never completed.
  std::string finish();

 private:
  BytePairTokenizer tokenizer_;
  std::string waiting_;
};

}  // namespace ferrite::text
