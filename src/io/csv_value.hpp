// What a field of a CSV file means: a number, a missing value, or neither.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
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

/// "-12.5" with at most 15 digits, which is most of the data there is: both operands of the division are
/// exact, so the result is the nearest double, as from_chars gives it, in a third of the time.
inline std::optional<double> parse_short_decimal(std::string_view text) {
  constexpr double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.size() > 16) return std::nullopt;
  std::int64_t mantissa = 0;
  std::size_t digits = 0, integer_digits = text.size();
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      mantissa = mantissa * 10 + (c - '0');
      ++digits;
    } else if (c == '.' && integer_digits == text.size()) {
      integer_digits = digits;
    } else {
      return std::nullopt;
    }
  }
  if (digits == 0 || digits > 15) return std::nullopt;
  const std::size_t fraction_digits = integer_digits == text.size() ? 0 : digits - integer_digits;
  const double value = static_cast<double>(mantissa) / powers[fraction_digits];
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
