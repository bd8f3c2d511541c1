#include "text/split.hpp"

#include <cstring>

namespace ferrite::text {

std::size_t WordSplitter::word_end(std::size_t begin) const {
  const char first = text_[begin];
  if (first == '\'') {
    if (const std::size_t length = contraction_length(begin)) return begin + length;
  }
  // Letters, numbers and symbols may take one space before them, only U+0020.
  const std::size_t start = begin + (first == ' ');
  if (start == text_.size()) return start;
  const auto byte = static_cast<unsigned char>(text_[start]);
  const CodePoint c = byte < 0x80 ? CodePoint{byte, 1} : decode_utf8(text_.substr(start));
  const CharClass kind = classes_[c.value];
  return kind == CharClass::space ? spaces_end(begin) : run_end(start + c.length, kind);
}

std::size_t WordSplitter::contraction_length(std::size_t apostrophe) const {
  const std::string_view rest = text_.substr(apostrophe + 1, 2);
  if (rest.empty()) return 0;
  if (std::strchr("sdmt", rest[0]) && rest[0] != '\0') return 2;
  return rest == "ll" || rest == "ve" || rest == "re" ? 3 : 0;
}

std::size_t WordSplitter::run_end(std::size_t at, CharClass kind) const {
  while (at < text_.size()) {
    const auto byte = static_cast<unsigned char>(text_[at]);
    const CodePoint c = byte < 0x80 ? CodePoint{byte, 1} : decode_utf8(text_.substr(at));
    if (classes_[c.value] != kind) break;
    at += c.length;
  }
  return at;
}

std::size_t WordSplitter::spaces_end(std::size_t begin) const {
  const std::size_t end = run_end(begin, CharClass::space);
  if (end == text_.size()) return end;
  // The last space of several belongs to what follows.
  std::size_t last = end - 1;
  while ((static_cast<unsigned char>(text_[last]) & 0xC0) == 0x80) --last;
  return last == begin ? end : last;
}

std::size_t safe_cut(std::string_view text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    at = text.find('\n', at);
    if (at == std::string_view::npos || at + 1 == text.size()) break;
    if (class_table()[decode_utf8(text.substr(at + 1)).value] != CharClass::space) return at + 1;
  }
  return text.size();
}

}  // namespace ferrite::text
