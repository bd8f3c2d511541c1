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

  /// The place of the name, or -1.
  std::int32_t of(std::string_view text) const;
  /// A number is its text or, if no category has that, the first category of the same value: a file in which
  /// all of 007, 008 are digits gives numbers, another one texts.
  std::int32_t of(double value) const;

 private:
  std::unordered_map<std::string, std::int32_t> places_;
  std::map<double, std::int32_t> numbers_;
};

}  // namespace ferrite::pfn::detail
