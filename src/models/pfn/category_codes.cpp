#include "models/pfn/category_codes.hpp"

#include <charconv>

#include "io/csv_value.hpp"

namespace ferrite::pfn::detail {

std::string number_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value + 0.0).ptr};
}

CategoryCodes::CategoryCodes(std::span<const std::string> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    places_.emplace(names[i], static_cast<std::int32_t>(i));
    if (const auto value = io_detail::parse_number(names[i]))
      numbers_.emplace(*value, static_cast<std::int32_t>(i));
  }
}

std::int32_t CategoryCodes::of(std::string_view text) const {
  const auto found = places_.find(std::string(text));
  return found == places_.end() ? -1 : found->second;
}

std::int32_t CategoryCodes::of(double value) const {
  if (numbers_.empty()) return -1;
  if (const std::int32_t exact = of(number_text(value)); exact >= 0) return exact;
  const auto found = numbers_.find(value);
  return found == numbers_.end() ? -1 : found->second;
}

}  // namespace ferrite::pfn::detail
