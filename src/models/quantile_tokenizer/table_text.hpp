// The meaning of a table's texts, for every kind of file: missing values, and how names are shown.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::quantile_tokenizer {

/// The text with control characters as \xNN, so that a name cannot control a terminal.
FERRITE_API std::string printable(std::string_view text);
/// All of them, with commas between.
FERRITE_API std::string printable(std::span<const std::string> texts);

/// At most so many bytes, with dots for what is left out.
FERRITE_API std::string shortened(const std::string& text, std::size_t most);

/// Markers of missing values: lower case, trimmed, ascending, without duplicates.
std::vector<std::string> normalized_markers(std::vector<std::string> markers);

/// Which fields are missing: an empty one, NA, N/A, null, nan, and the markers of a TableConfig.
class FERRITE_API MissingValues {
 public:
  explicit MissingValues(std::vector<std::string> markers = {});

  const std::vector<std::string>& markers() const { return markers_; }
  /// Those that are numbers: -999.
  const std::vector<double>& numbers() const { return numbers_; }
  bool is_missing(std::string_view text) const;
  /// NaN for a number that is one of `markers`.
  static double without(double value, std::span<const double> markers) {
    for (const double marker : markers)
      if (value == marker) return std::numeric_limits<double>::quiet_NaN();
    return value;
  }

 private:
  std::vector<std::string> markers_;
  std::vector<double> numbers_;
};

}  // namespace ferrite::quantile_tokenizer
