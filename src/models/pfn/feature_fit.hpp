// One feature of a TableEncoder: how the cells of a column become numbers.
#pragma once

#include <cmath>
#include <limits>

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn::detail {

enum class FeatureKind : std::uint8_t { number, category, date, month, weekday, hour };
constexpr int feature_kinds = 6;

/// How texts such as 31/01/2024 are read, beside those of ISO 8601.
enum class DateOrder : std::uint8_t { none, year_first, month_first, day_first };
constexpr int date_orders = 4;

struct FeatureFit {
  std::string column;
  FeatureKind kind = FeatureKind::number;
  /// Of numbers and dates: (value - offset) * scale.
  double offset = 0, scale = 1;
  DateOrder date_order = DateOrder::none;
  std::vector<std::string> categories;
  bool has_others = false;  // one more category, for all that are not named

  Feature feature() const;
};

/// Cells that could not be encoded.
struct LostCells {
  std::int64_t unknown = 0;     // categories that the train table does not have
  std::int64_t unreadable = 0;  // texts where numbers or dates were
  std::int64_t infinite = 0;
};

/// What `read` makes of a column's texts, or its numbers if it has none; NaN where there is none.
template <class F>
std::vector<double> read_values(const RawColumn& column, const F& read, LostCells& lost) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  if (!column.is_text()) {
    values = column.numbers;
  } else {
    std::vector<double> distinct;
    for (const std::string& text : column.text.distinct) distinct.push_back(read(text));
    for (const std::int32_t code : column.text.codes) {
      values.push_back(code < 0 ? none : distinct[static_cast<std::size_t>(code)]);
      lost.unreadable += code >= 0 && std::isnan(values.back());
    }
  }
  for (double& value : values) {
    if (!std::isinf(value)) continue;
    ++lost.infinite;
    value = none;
  }
  return values;
}

/// The cells of a column as a feature; NaN is missing.
std::vector<float> encode(const RawColumn& column, const FeatureFit& fit, LostCells& lost);

/// What became of a column of the train table.
struct ColumnVerdict {
  enum Kind : std::uint8_t { used, empty, constant, identifier } kind = used;
  std::vector<FeatureFit> features;
  std::int64_t infinite = 0;
  std::int64_t joined = 0;       // categories that became one
  bool no_categories = false;    // numbers that should be, but differ in every row
  bool ambiguous_dates = false;  // day and month could be either way
};
ColumnVerdict fit_column(const RawColumn& column, const EncoderConfig& config, bool is_category);

/// What there is to say of a column of texts that would be numbers or dates but for a few: the end of a
/// sentence. Empty for other columns.
std::string spoilt_values(const RawColumn& column);

/// Seconds since 1970 of a text; NaN if it is not a date.
double read_date(std::string_view text, DateOrder order);
/// The order in which all these texts are dates; `none` if some are not. If two orders are possible, days
/// come first if points separate the parts or `day_first` says so, else months, and `ambiguous` is set.
DateOrder date_order_of(std::span<const std::string> texts, bool day_first, bool& ambiguous);

}  // namespace ferrite::pfn::detail
