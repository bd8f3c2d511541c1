// From cells to the codes of known categories, whether a cell was read as text or as a number.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ferrite::pfn::detail {

/// The shortest text that reads as this number.
std::string number_text(double value);

class CategoryCodes {
 public:
  explicit CategoryCodes(std::span<const std::string> names);

  // Each is the place of the name or, if no category has that, of the first category of the same value, or
  // -1: one other cell in a file decides whether 7.0, 007 or 2024-01-31 are read as texts.
  std::int32_t of(std::string_view text) const;
  std::int32_t of(double value) const;
  std::int32_t of_date(double seconds, bool days) const;

 private:
  static std::int32_t find(const std::map<double, std::int32_t>& places, double value);

  std::unordered_map<std::string, std::int32_t> places_;
  std::map<double, std::int32_t> numbers_, dates_;
};

}  // namespace ferrite::pfn::detail
