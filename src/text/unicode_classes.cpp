#include "text/unicode_classes.hpp"

#include <algorithm>
#include <iterator>

namespace ferrite::text {
namespace {

struct Range {
  char32_t first, last;
  CharClass kind;
};

constexpr auto letter = CharClass::letter, number = CharClass::number, space = CharClass::space;
constexpr Range ranges[] = {
#include "text/unicode_ranges.inc"
};
static_assert(std::end(ranges)[-1].last < classified_code_points);

/// The bytes that follow a lead byte, and the range of the first of them: overlong forms, surrogates and what
/// lies beyond U+10FFFF are excluded by it.
struct Sequence {
  std::size_t length = 0;
  unsigned char low = 0x80, high = 0xBF;
};

constexpr Sequence sequence_of(unsigned char lead) {
  if (lead < 0xC2 || lead > 0xF4) return {};
  Sequence sequence{.length = lead >= 0xF0 ? 4u : lead >= 0xE0 ? 3u : 2u};
  if (lead == 0xE0) sequence.low = 0xA0;
  if (lead == 0xED) sequence.high = 0x9F;
  if (lead == 0xF0) sequence.low = 0x90;
  if (lead == 0xF4) sequence.high = 0x8F;
  return sequence;
}

}  // namespace

ClassTable::ClassTable() {
  classes_.fill(CharClass::other);
  for (const Range& range : ranges)
    std::fill(classes_.begin() + range.first, classes_.begin() + range.last + 1, range.kind);
}

const ClassTable& class_table() {
  static const ClassTable table;
  return table;
}

CodePoint decode_utf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const Sequence sequence = sequence_of(lead);
  if (sequence.length == 0) return {no_code_point, 1};
  const std::size_t known = std::min(sequence.length, text.size());
  char32_t value = lead & (0xFFu >> (sequence.length + 1));
  for (std::size_t i = 1; i < known; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == 1 ? byte < sequence.low || byte > sequence.high : (byte & 0xC0) != 0x80)
      return {no_code_point, 1};
    value = value << 6 | (byte & 0x3F);
  }
  if (known < sequence.length) return {cut_code_point, 1};
  return {value, sequence.length};
}

}  // namespace ferrite::text
