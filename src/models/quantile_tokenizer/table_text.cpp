#include "models/quantile_tokenizer/table_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/csv_value.hpp"

namespace ferrite::quantile_tokenizer {

namespace {
std::string normalized(std::string_view text) {
  std::string lower(io_detail::trim(text));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  return lower;
}
}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if (c < 0x20 || c == 0x7F)
      out += fmt::format("\\x{:02x}", c);
    else if (c == 0xC2 && next >= 0x80 && next < 0xA0)  // the control characters U+0080 to U+009F
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    else
      out += text[i];
  }
  return out;
}

std::string printable(std::span<const std::string> texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + printable(text);
  return out;
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
  return text.substr(0, end) + "...";
}

std::vector<std::string> normalized_markers(std::vector<std::string> markers) {
  for (std::string& marker : markers) marker = normalized(marker);
  std::sort(markers.begin(), markers.end());
  markers.erase(std::unique(markers.begin(), markers.end()), markers.end());
  return markers;
}

MissingValues::MissingValues(std::vector<std::string> markers)
    : markers_(normalized_markers(std::move(markers))) {
  for (const std::string& marker : markers_)
    if (const auto number = io_detail::parse_number(marker)) numbers_.push_back(*number);
}

bool MissingValues::is_missing(std::string_view text) const {
  if (io_detail::is_missing(text)) return true;
  if (markers_.empty()) return false;
  if (std::binary_search(markers_.begin(), markers_.end(), normalized(text))) return true;
  if (numbers_.empty()) return false;
  const auto number = io_detail::parse_number(text);
  return number && std::find(numbers_.begin(), numbers_.end(), *number) != numbers_.end();
}

}  // namespace ferrite::quantile_tokenizer
