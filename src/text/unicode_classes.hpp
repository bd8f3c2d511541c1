// Code points of UTF-8 and the classes of them that GPT-2's pattern knows: \p{L}, \p{N}, \s and the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferrite::text {

enum class CharClass : std::uint8_t { other, letter, number, space };

/// No code point from here on is a letter, a number or a space.
inline constexpr std::size_t classified_code_points = 0x32400;

/// One byte per code point: real text touches few of its pages.
class ClassTable {
 public:
  ClassTable();
  CharClass operator[](char32_t c) const { return c < classes_.size() ? classes_[c] : CharClass::other; }

 private:
  std::array<CharClass, classified_code_points> classes_;
};

const ClassTable& class_table();

/// In place of a code point: a byte that belongs to no well-formed sequence, and the first byte of one that
/// the end of the text cuts short. Both are of length 1 and of class `other`.
inline constexpr char32_t no_code_point = 0xFFFFFFFF;
inline constexpr char32_t cut_code_point = 0xFFFFFFFE;

struct CodePoint {
  char32_t value;
  std::size_t length;
};

/// The first code point of a text that is not empty.
CodePoint decode_utf8(std::string_view text);

}  // namespace ferrite::text
