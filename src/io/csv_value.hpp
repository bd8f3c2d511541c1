// What a field of a CSV file means: a number, a missing value, or neither.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
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
  std::string lower(trim(text.substr(0, 64)));
  if (lower.size() > 4) return false;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? c | 32 : c; });
  return lower.empty() || lower == "na" || lower == "n/a" || lower == "nan" || lower == "null";
}

/// The value of eight digits in a row, which come first in memory first; nothing if one of them is none.
inline std::optional<std::uint64_t> eight_digits(const char* text) {
  std::uint64_t v;
  std::memcpy(&v, text, 8);
  constexpr std::uint64_t high = 0xF0F0F0F0F0F0F0F0;
  if (((v & high) | (((v + 0x0606060606060606) & high) >> 4)) != 0x3333333333333333) return std::nullopt;
  v -= 0x3030303030303030;
  v = v * 10 + (v >> 8);  // pairs, then two pairs by two multiplications
  return (((v & 0x000000FF000000FF) * 0x000F424000000064) +
          (((v >> 16) & 0x000000FF000000FF) * 0x0000271000000001)) >>
         32;
}

/// "-12.5" with at most 15 digits, which is most of the data there is: both operands of the division are
/// exact, so the result is the nearest double, as from_chars gives it, in a fraction of the time.
inline std::optional<double> parse_short_decimal(std::string_view text) {
  constexpr double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *next = text.data(), *const end = next + text.size();
  const bool negative = next != end && *next == '-';
  next += negative;
  if (end - next > 16) return std::nullopt;
  std::uint64_t mantissa = 0;
  const auto digits = [&] {
    const char* const begin = next;
    if (end - next >= 8)
      if (const auto eight = eight_digits(next)) {
        mantissa = mantissa * 100'000'000 + *eight;
        next += 8;
      }
    for (; next != end && static_cast<unsigned char>(*next - '0') < 10; ++next)
      mantissa = mantissa * 10 + static_cast<std::uint64_t>(*next - '0');
    return next - begin;
  };
  const std::ptrdiff_t whole = digits();
  std::ptrdiff_t fraction = 0;
  if (next != end && *next == '.') {
    ++next;
    fraction = digits();
  }
  if (next != end || whole + fraction == 0 || whole + fraction > 15) return std::nullopt;
  const double value = static_cast<double>(mantissa) / powers[fraction];
  return negative ? -value : value;
}

/// A decimal number, "inf" included, with spaces around it allowed; nothing for everything else.
inline std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (const auto value = parse_short_decimal(text)) return value;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

}  // namespace ferrite::io_detail
