#include "models/pfn/feature_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "ferrite/io/csv_scanner.hpp"
#include "io/csv_value.hpp"
#include "models/pfn/category_codes.hpp"
#include "models/quantile_tokenizer/dates.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn::detail {

namespace {

using quantile_tokenizer::is_date;
using quantile_tokenizer::printable;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double day_seconds = 86400;

/// The numbers or the dates of a column, whatever it was read as; NaN where there is none.
std::vector<double> values_of(const RawColumn& column, const FeatureFit& fit, LostCells& lost) {
  const bool dates = fit.kind != FeatureKind::number;
  if (!column.is_text() && dates != is_date(column.kind)) {
    for (const double value : column.numbers) lost.unreadable += !std::isnan(value);
    return std::vector<double>(column.numbers.size(), none);
  }
  const auto read = [&](const std::string& text) {
    return dates ? read_date(text, fit.date_order) : io_detail::parse_number(text).value_or(none);
  };
  return read_values(column, read, lost);
}

double encoded(double value, const FeatureFit& fit) {
  constexpr double most = 1e30;  // what is larger would not fit into f32
  if (std::isnan(value)) return none;
  const double days = std::clamp(std::floor(value / day_seconds), -1e6, 4e6);  // the calendar has no others
  switch (fit.kind) {
    case FeatureKind::month: {
      const std::chrono::year_month_day date{
          std::chrono::sys_days(std::chrono::days(static_cast<std::int64_t>(days)))};
      return static_cast<unsigned>(date.month());
    }
    case FeatureKind::weekday:  // the first day of 1970 was a Thursday; Monday is 0
      return std::fmod(std::fmod(days + 3, 7) + 7, 7);
    case FeatureKind::hour:
      return std::clamp(std::floor((value - days * day_seconds) / 3600), 0.0, 23.0);
    default:
      return std::clamp((value - fit.offset) * fit.scale, -most, most);
  }
}

std::vector<float> encode_categories(const RawColumn& column, const FeatureFit& fit, LostCells& lost) {
  const CategoryCodes codes(fit.categories);
  const auto feature_of = [&](std::int32_t code) {
    if (code >= 0) return static_cast<float>(code);
    return fit.has_others ? static_cast<float>(fit.categories.size())
                          : std::numeric_limits<float>::quiet_NaN();
  };
  std::vector<float> out;
  if (column.is_text()) {
    std::vector<float> distinct;
    for (const std::string& text : column.text.distinct) distinct.push_back(feature_of(codes.of(text)));
    for (const std::int32_t code : column.text.codes) {
      out.push_back(code < 0 ? std::numeric_limits<float>::quiet_NaN()
                             : distinct[static_cast<std::size_t>(code)]);
      lost.unknown += code >= 0 && std::isnan(out.back());
    }
    return out;
  }
  std::map<double, float> seen;
  for (const double value : column.numbers) {
    if (!std::isfinite(value)) {
      lost.infinite += std::isinf(value);
      out.push_back(std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const auto [found, added] = seen.try_emplace(value);
    if (added)
      found->second = feature_of(is_date(column.kind) ? codes.of_date(value, column.kind == FieldKind::date)
                                                      : codes.of(value));
    out.push_back(found->second);
    lost.unknown += std::isnan(found->second);
  }
  return out;
}

/// Where f32 cannot tell numbers apart or hold them, their offset and a power of two.
void fit_range(FeatureFit& fit, double least, double greatest) {
  double reach = std::max(std::abs(least), std::abs(greatest));
  const double range = greatest - least;
  if (fit.kind == FeatureKind::date) {
    fit.offset = least;
    fit.scale = 1 / day_seconds;
    return;
  }
  if (range > 0 && reach > 1024 * range) {
    fit.offset = least;
    reach = range;
  }
  if (reach > 0 && (reach < 1e-15 || reach > 1e15))
    fit.scale = std::ldexp(1.0, std::min(-std::ilogb(reach), 1000));
}

ColumnVerdict fit_values(const RawColumn& column, FeatureFit fit, const EncoderConfig& config) {
  ColumnVerdict verdict;
  LostCells lost;
  const std::vector<double> values = values_of(column, fit, lost);
  verdict.infinite = lost.infinite;
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  std::int64_t present = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    ++present;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  if (present == 0) {
    verdict.kind = ColumnVerdict::empty;
  } else if (least == greatest && present == static_cast<std::int64_t>(values.size())) {
    verdict.kind = ColumnVerdict::constant;
  } else {
    fit_range(fit, least, greatest);
    verdict.features.push_back(fit);
  }
  if (verdict.kind != ColumnVerdict::used || fit.kind != FeatureKind::date || !config.date_parts)
    return verdict;
  for (const FeatureKind kind : {FeatureKind::month, FeatureKind::weekday, FeatureKind::hour}) {
    FeatureFit part = fit;
    part.kind = kind;
    const double first = encoded(least, part);
    if (std::any_of(values.begin(), values.end(),
                    [&](double v) { return !std::isnan(v) && encoded(v, part) != first; }))
      verdict.features.push_back(part);
  }
  return verdict;
}

/// The different cells of a column as texts, with the number of rows of each: texts in the order of their
/// bytes, numbers by value.
std::vector<std::pair<std::string, std::int64_t>> counted(const RawColumn& column, ColumnVerdict& verdict) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  if (column.is_text()) {
    for (const std::string& text : column.text.distinct) counts.emplace_back(text, 0);
    for (const std::int32_t code : column.text.codes)
      if (code >= 0) ++counts[static_cast<std::size_t>(code)].second;
    std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
    std::sort(counts.begin(), counts.end());
    return counts;
  }
  std::map<double, std::int64_t> numbers;
  for (const double value : column.numbers) {
    verdict.infinite += std::isinf(value);
    if (std::isfinite(value)) ++numbers[value + 0.0];
  }
  for (const auto& [value, count] : numbers)
    counts.emplace_back(is_date(column.kind)
                            ? quantile_tokenizer::date_text(value, column.kind == FieldKind::date)
                            : number_text(value),
                        count);
  return counts;
}

ColumnVerdict fit_categories(const RawColumn& column, const EncoderConfig& config) {
  ColumnVerdict verdict;
  const auto counts = counted(column, verdict);
  std::int64_t present = 0;
  for (const auto& entry : counts) present += entry.second;
  const std::size_t rows = column.is_text() ? column.text.codes.size() : column.numbers.size();
  const auto different = static_cast<std::int64_t>(counts.size());
  if (present == 0) verdict.kind = ColumnVerdict::empty;
  if (different == 1 && present == static_cast<std::int64_t>(rows)) verdict.kind = ColumnVerdict::constant;
  // Of a column that is mostly empty, which rows have a value may tell something.
  if (different > 1 && different == present && 2 * present > static_cast<std::int64_t>(rows))
    verdict.kind = ColumnVerdict::identifier;
  if (verdict.kind != ColumnVerdict::used) return verdict;

  std::vector<std::size_t> kept(counts.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  if (different > config.most_categories) {
    std::stable_sort(kept.begin(), kept.end(),
                     [&](std::size_t a, std::size_t b) { return counts[a].second > counts[b].second; });
    kept.resize(static_cast<std::size_t>(config.most_categories));
    std::erase_if(kept, [&](std::size_t i) { return counts[i].second < 2; });
    std::sort(kept.begin(), kept.end());
    verdict.joined = different - static_cast<std::int64_t>(kept.size());
  }
  FeatureFit fit;
  fit.column = column.name;
  fit.kind = FeatureKind::category;
  fit.has_others = verdict.joined > 0;
  for (const std::size_t i : kept) fit.categories.push_back(counts[i].first);
  verdict.features.push_back(std::move(fit));
  return verdict;
}

}  // namespace

Feature FeatureFit::feature() const {
  static constexpr std::string_view parts[] = {"", "", "", " (month)", " (weekday)", " (hour)"};
  const bool is_category = kind == FeatureKind::category;
  return {column + std::string(parts[static_cast<std::size_t>(kind)]), column, is_category,
          is_category ? static_cast<std::int64_t>(categories.size()) + has_others : 0};
}

std::vector<float> encode(const RawColumn& column, const FeatureFit& fit, LostCells& lost) {
  if (fit.kind == FeatureKind::category) return encode_categories(column, fit, lost);
  std::vector<float> out;
  for (const double value : values_of(column, fit, lost))
    out.push_back(static_cast<float>(encoded(value, fit)));
  return out;
}

namespace {

/// As spoilt_values, of texts that should be `what`, which `is_one` tells from others.
template <class IsOne>
std::string spoilt(const RawColumn& column, std::string_view what, IsOne&& is_one) {
  constexpr std::size_t most_texts = 3;
  std::vector<bool> is_good;
  std::vector<std::string> texts;
  for (const std::string& text : column.text.distinct) {
    is_good.push_back(is_one(text));
    if (is_good.back()) continue;
    if (texts.size() == most_texts) return "";
    texts.push_back(printable(text));
  }
  if (texts.empty()) return "";
  std::int64_t good = 0, all = 0;
  for (const std::int32_t code : column.text.codes) {
    if (code < 0) continue;
    ++all;
    good += is_good[static_cast<std::size_t>(code)];
  }
  if (good <= all - good) return "";
  std::string markers;  // as --missing takes them
  for (const std::string& text : texts) {
    if (!markers.empty()) markers += ',';
    append_csv_field(markers, text);
  }
  return fmt::format(
      "is taken as text: {} of its {} values are {}, the others are '{}'; --missing '{}' "
      "(TableConfig::missing) reads these as missing values",
      good, all, what, fmt::join(texts, "', '"), markers);
}

}  // namespace

std::string spoilt_values(const RawColumn& column) {
  std::string note =
      spoilt(column, "numbers", [](const std::string& text) { return !!io_detail::parse_number(text); });
  if (!note.empty()) return note;
  DateOrder best = DateOrder::none;
  auto fewest = std::numeric_limits<std::ptrdiff_t>::max();
  for (const DateOrder order : {DateOrder::year_first, DateOrder::month_first, DateOrder::day_first}) {
    const auto unread = std::ranges::count_if(
        column.text.distinct, [&](const std::string& text) { return std::isnan(read_date(text, order)); });
    if (unread < fewest) best = order;
    fewest = std::min(fewest, unread);
  }
  return spoilt(column, "dates", [&](const std::string& text) { return !std::isnan(read_date(text, best)); });
}

ColumnVerdict fit_column(const RawColumn& column, const EncoderConfig& config, bool is_category) {
  FeatureFit fit;
  fit.column = column.name;
  if (is_category) {
    ColumnVerdict verdict = fit_categories(column, config);
    if (verdict.kind != ColumnVerdict::identifier || column.is_text()) return verdict;
    verdict = fit_column(column, config, false);
    verdict.no_categories = true;
    return verdict;
  }
  if (!column.is_text()) {
    fit.kind = is_date(column.kind) ? FeatureKind::date : FeatureKind::number;
    return fit_values(column, std::move(fit), config);
  }
  bool ambiguous = false;
  fit.kind = FeatureKind::date;
  fit.date_order = date_order_of(column.text.distinct, config.day_first, ambiguous);
  if (fit.date_order == DateOrder::none) return fit_categories(column, config);
  ColumnVerdict verdict = fit_values(column, std::move(fit), config);
  verdict.ambiguous_dates = ambiguous;
  return verdict;
}

}  // namespace ferrite::pfn::detail
