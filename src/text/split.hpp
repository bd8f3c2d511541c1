// Cuts text into words as GPT-2 does, by the pattern
//   '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include "ferrite/core/export.hpp"
#include "text/unicode_classes.hpp"

namespace ferrite::text {

class WordSplitter {
 public:
  /// The text must outlive the splitter. Bytes that are not UTF-8 count as symbols, one by one.
  explicit WordSplitter(std::string_view text) : text_(text), classes_(class_table()) {}

  /// End of the word that begins at `begin`, which is before the end of the text and where a word begins.
  std::size_t word_end(std::size_t begin) const;

 private:
  std::size_t contraction_length(std::size_t apostrophe) const;
  std::size_t run_end(std::size_t at, CharClass kind) const;
  std::size_t spaces_end(std::size_t begin) const;

  std::string_view text_;
  const ClassTable& classes_;
};

/// A place at or after `from` where a word begins whatever surrounds it, so that parts of a text can be split
/// on several threads: after a line end that no white space follows, or the end of the text.
FERRITE_API std::size_t safe_cut(std::string_view text, std::size_t from);

}  // namespace ferrite::text
