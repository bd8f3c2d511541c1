// Dates that are not of ISO 8601: 31/01/2024, 1-31-2024 10:30, 31.1.2024, 2024/01/31.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "io/csv_value.hpp"
#include "models/pfn/feature_fit.hpp"
#include "models/quantile_tokenizer/dates.hpp"

namespace ferrite::pfn::detail {

namespace {

/// Three numbers with the same separator between them, and what follows.
struct DateParts {
  std::array<int, 3> numbers{};
  char separator = 0;
  std::string_view rest;
};

std::optional<DateParts> parts_of(std::string_view text) {
  DateParts parts;
  text = io_detail::trim(text);
  for (std::size_t i = 0; i < 3; ++i) {
    if (i > 0) {
      if (text.empty() || (i == 2 && text[0] != parts.separator)) return std::nullopt;
      parts.separator = text[0];
      text.remove_prefix(1);
    }
    const char* const end = text.data() + std::min<std::size_t>(text.size(), 4);
    if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
    const auto [next, error] = std::from_chars(text.data(), end, parts.numbers[i]);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
  }
  parts.rest = text;
  const bool known = parts.separator == '/' || parts.separator == '.' || parts.separator == '-';
  return known ? std::optional(parts) : std::nullopt;
}

}  // namespace

double read_date(std::string_view text, DateOrder order) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (const auto iso = quantile_tokenizer::parse_date(text)) return iso->seconds;
  const auto parts = order == DateOrder::none ? std::nullopt : parts_of(text);
  if (!parts) return none;
  const auto& n = parts->numbers;
  const int year = order == DateOrder::year_first ? n[0] : n[2];
  const int month = order == DateOrder::month_first ? n[0] : n[1];
  const int day = order == DateOrder::year_first ? n[2] : order == DateOrder::day_first ? n[0] : n[1];
  if (year < 1000 || month > 12 || day > 31) return none;
  const auto date =
      quantile_tokenizer::parse_date(fmt::format("{:04}-{:02}-{:02}{}", year, month, day, parts->rest));
  return date ? date->seconds : none;
}

DateOrder date_order_of(std::span<const std::string> texts, bool day_first_if_both, bool& ambiguous) {
  ambiguous = false;
  const auto all_in = [&](DateOrder order) {
    return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
      const double seconds = read_date(text, order);
      return seconds == seconds;
    });
  };
  if (texts.empty() || all_in(DateOrder::none)) return DateOrder::none;  // the reader was told: texts
  if (all_in(DateOrder::year_first)) return DateOrder::year_first;
  const bool month_first = all_in(DateOrder::month_first), day_first = all_in(DateOrder::day_first);
  if (!month_first) return day_first ? DateOrder::day_first : DateOrder::none;
  if (!day_first) return DateOrder::month_first;
  if (day_first_if_both || texts.front().find('.') != std::string::npos) return DateOrder::day_first;
  ambiguous = true;
  return DateOrder::month_first;
}

}  // namespace ferrite::pfn::detail
