#include "models/pfn/category_codes.hpp"

#include <charconv>
#include <cmath>

#include "io/csv_value.hpp"
#include "models/quantile_tokenizer/dates.hpp"

namespace ferrite::pfn::detail {

using quantile_tokenizer::date_text;
using quantile_tokenizer::parse_date;

std::string number_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value + 0.0).ptr};
}

CategoryCodes::CategoryCodes(std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    places_.emplace(names[i], static_cast<std::int32_t>(i));
    if (const auto value = io_detail::parse_number(names[i]))
      numbers_.emplace(*value, static_cast<std::int32_t>(i));
    else if (const auto date = parse_date(names[i]))
      dates_.emplace(date->seconds, static_cast<std::int32_t>(i));
  }
}

std::int32_t CategoryCodes::find(const std::map<double, std::int32_t>& places, double value) {
  const auto found = places.find(value);
  return found == places.end() ? -1 : found->second;
}

std::int32_t CategoryCodes::of(std::string_view text) const {
  if (const auto exact = places_.find(std::string(text)); exact != places_.end()) return exact->second;
  constexpr double most = 0x1p53;  // beyond, different integers are the same double
  if (!numbers_.empty())
    if (const auto value = io_detail::parse_number(text); value && std::abs(*value) < most)
      return find(numbers_, *value);
  if (!dates_.empty())
    if (const auto date = parse_date(text)) return find(dates_, date->seconds);
  return -1;
}

std::int32_t CategoryCodes::of(double value) const {
  if (numbers_.empty()) return -1;
  const std::int32_t of_text = of(number_text(value));
  return of_text >= 0 ? of_text : find(numbers_, value);
}

std::int32_t CategoryCodes::of_date(double seconds, bool days) const {
  return dates_.empty() ? -1 : of(date_text(seconds, days));
}

}  // namespace ferrite::pfn::detail
