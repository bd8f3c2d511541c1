// The meaning of a field of a CSV file: a number, a missing value, or neither.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ferrite::io_detail {

inline std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// An empty field, NA, N/A, null or nan, in any case.
inline bool is_missing(std::string_view text) {
  text = trim(text);
  const auto is = [&](std::string_view marker) {
    return std::equal(text.begin(), text.end(), marker.begin(), marker.end(),
                      [](char c, char lower) { return (c >= 'A' && c <= 'Z' ? c | 32 : c) == lower; });
  };
  return text.size() <= 4 && (text.empty() || is("na") || is("n/a") || is("nan") || is("null"));
}

/// The digits at the start of a text, at most `most` of them, which is at most 7: how many, and their value.
/// Eight bytes are read. There is no branch, because the length of a number cannot be predicted.
struct Digits {
  int count;
  std::uint64_t value;
};
inline Digits leading_digits(const char* text, int most) {
  constexpr std::uint64_t each = 0x0101010101010101;
  std::uint64_t word;  // the first byte is the lowest
  std::memcpy(&word, text, sizeof word);
  word ^= each * '0';                                               // digits become 0 to 9
  const std::uint64_t others = (word + each * (0x80 - 10)) | word;  // the high bit where there is no digit
  const int count = std::min(std::countr_zero((others & (each * 0x80)) | std::uint64_t{1} << 63) / 8, most);
  word = word << (8 * (7 - count)) << 8;  // zeros before the digits
  word = word * 10 + (word >> 8);         // pairs, then two pairs by two multiplications
  word = (word & 0x000000FF000000FF) * 0x000F424000000064 +
         ((word >> 16) & 0x000000FF000000FF) * 0x0000271000000001;
  return {count, word >> 32};
}

inline constexpr std::uint64_t powers_of_ten[] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000};
inline constexpr double divisors[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
inline constexpr double signs[] = {1, -1};

/// Reads a number such as "-12.5", as most are, with at most 7 digits before and 14 after the point, and
/// returns its end; nullptr if there is none or it is too long. Its digits and the power of ten are exact as
/// doubles, so the quotient is the nearest double, as from_chars gives it, in a fraction of the time. Bytes
/// up to short_decimal_reach must be readable.
constexpr std::ptrdiff_t short_decimal_reach = 1 + 7 + 1 + 7 + 8;
inline const char* read_short_decimal(const char* text, double& value) {
  const bool negative = *text == '-';
  text += negative;
  const Digits whole = leading_digits(text, 7);
  text += whole.count;
  const bool point = *text == '.';
  text += point;
  const Digits first = leading_digits(text, 7 * point);
  const Digits second = leading_digits(text + 7, 7 * (first.count == 7));
  const int places = first.count + second.count;
  const std::uint64_t digits =  // at most 10^21, and if that overflows there are more than 19
      (whole.value * powers_of_ten[first.count] + first.value) * powers_of_ten[second.count] + second.value;
  if (whole.count + places == 0 || whole.count + places > 19 || digits > std::uint64_t{1} << 53)
    return nullptr;
  value = static_cast<double>(digits) / divisors[places] * signs[negative];
  return text + places;
}

inline std::optional<double> parse_short_decimal(std::string_view text) {
  char padded[short_decimal_reach] = {};
  double value = 0;
  if (text.size() >= sizeof padded) return std::nullopt;
  std::copy(text.begin(), text.end(), padded);
  if (read_short_decimal(padded, value) != padded + text.size()) return std::nullopt;
  return value;
}

/// The double nearest to a decimal number that from_chars finds out of range: 0 or infinity, with its sign.
/// Such numbers are so far from 1 that the place of the first digit and the exponent distinguish them.
inline double out_of_range_number(std::string_view text) {
  const double sign = text.starts_with('-') ? -1 : 1;
  const auto exponent_mark = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, exponent_mark);
  const auto point = std::min(digits.find('.'), digits.size()), first = digits.find_first_of("123456789");
  auto magnitude = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (exponent_mark != text.npos) {
    const std::string_view exponent = text.substr(exponent_mark + 1);
    const bool negative = exponent.starts_with('-');
    std::int64_t value = 0;
    for (const char c : exponent.substr(negative || exponent.starts_with('+')))
      value = std::min<std::int64_t>(10 * value + (c - '0'), std::int64_t{1} << 56);
    magnitude += negative ? -value : value;
  }
  return sign * (magnitude > 0 ? std::numeric_limits<double>::infinity() : 0);
}

/// The double nearest to a decimal number, "inf" included, with spaces around it allowed; nothing for any
/// other text.
inline std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  constexpr std::size_t longest = 16;  // of those that have few enough digits, nearly all
  if (text.size() <= longest)
    if (const auto value = parse_short_decimal(text)) return value;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return out_of_range_number(text);
  if (error != std::errc{} || std::isnan(value)) return std::nullopt;
  return value;
}

/// The character that may be the true delimiter of a row that was read as a single field; 0 if there is none.
inline char suspected_delimiter(std::string_view row, char delimiter) {
  for (const char c : {';', '\t', '|', ','})
    if (c != delimiter && row.find(c) != row.npos) return c;
  return 0;
}
/// How a command line or a message names it.
inline std::string delimiter_name(char delimiter) {
  return delimiter == '\t' ? "'\\t'" : std::string{'\'', delimiter, '\''};
}

}  // namespace ferrite::io_detail
