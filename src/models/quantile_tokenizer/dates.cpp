#include "models/quantile_tokenizer/dates.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>

#include "io/csv_value.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

constexpr double day_seconds = 86400;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads a text from its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// A number of exactly so many digits, up to `most`; -1 if there is none.
  int number(std::size_t digits, int most) {
    int value = 0;
    if (text_.size() < digits) return -1;
    for (std::size_t i = 0; i < digits; ++i) {
      if (!is_digit(text_[i])) return -1;
      value = 10 * value + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return value <= most ? value : -1;
  }
  /// ".25" as 0.25; 0 if no point follows, nothing if no digit follows the point.
  std::optional<double> fraction() {
    if (!text_.starts_with('.')) return 0;
    std::size_t end = 1;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    const auto value = end > 1 ? io_detail::parse_number(text_.substr(0, end)) : std::nullopt;
    text_.remove_prefix(end);
    return value;
  }

 private:
  std::string_view text_;
};

/// Since midnight.
struct Time {
  std::int64_t seconds;
  double fraction;
};

/// Of "10:30", "10:30:15" or "10:30:15.25".
std::optional<Time> time_of(Reader& text) {
  const int hour = text.number(2, 23);
  if (hour < 0 || !text.take(':')) return std::nullopt;
  const int minute = text.number(2, 59);
  const bool has_seconds = minute >= 0 && text.take(':');
  const int second = has_seconds ? text.number(2, 59) : 0;
  const auto fraction = has_seconds ? text.fraction() : 0.0;
  if (minute < 0 || second < 0 || !fraction) return std::nullopt;
  return Time{3600 * hour + 60 * minute + second, *fraction};
}

/// Seconds that local time is ahead of UTC: of "Z", "+02", "+0200", "+02:00" or nothing.
std::optional<std::int64_t> offset_of(Reader& text) {
  if (text.at_end() || text.take('Z')) return 0;
  const bool ahead = text.take('+');
  if (!ahead && !text.take('-')) return std::nullopt;
  const int hour = text.number(2, 23);
  const bool colon = text.take(':');
  const int minute = colon || !text.at_end() ? text.number(2, 59) : 0;
  if (hour < 0 || minute < 0) return std::nullopt;
  return (ahead ? 1 : -1) * (3600 * hour + 60 * minute);
}

}  // namespace

std::optional<Moment> parse_date(std::string_view field) {
  Reader text(io_detail::trim(field));
  const int year = text.number(4, 9999);
  if (year < 0 || !text.take('-')) return std::nullopt;
  const int month = text.number(2, 12);
  if (month < 0 || !text.take('-')) return std::nullopt;
  const int day = text.number(2, 31);
  if (day < 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  const std::int64_t midnight = 86400 * std::int64_t{std::chrono::sys_days(date).time_since_epoch().count()};
  if (text.at_end()) return Moment{static_cast<double>(midnight), false};
  if (!text.take('T') && !text.take(' ')) return std::nullopt;
  const auto time = time_of(text);
  const auto offset = time ? offset_of(text) : std::nullopt;
  if (!offset || !text.at_end()) return std::nullopt;
  return Moment{static_cast<double>(midnight + time->seconds - *offset) + time->fraction, true};
}

std::string date_text(double seconds, bool days, double least, double greatest) {
  const auto rounded = [&](double unit) {
    const double down = std::floor(seconds / unit) * unit;
    return down >= least ? down : down + unit;
  };
  const auto fits = [&](double value) { return value >= least && value <= greatest; };
  double value = seconds;
  const double day = rounded(day_seconds);
  const bool day_alone = days && fits(day);
  if (day_alone) {
    value = day;
  } else if (const double whole = rounded(1); fits(whole)) {
    value = whole;
  }
  constexpr double first = -719528 * day_seconds, end = 2932897 * day_seconds;  // of the years 0 and 10000
  if (!(value >= first && value < end)) return fmt::format("{}", value);
  const double day_number = std::floor(value / day_seconds), whole = std::floor(value);
  const std::chrono::year_month_day date{
      std::chrono::sys_days(std::chrono::days(static_cast<std::int64_t>(day_number)))};
  std::string text = fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  if (day_alone) return text;
  const auto time = static_cast<int>(whole - day_number * day_seconds);
  text += fmt::format("T{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60);
  if (value == whole) return text;
  for (const int places : {3, 6, 9}) {
    const std::string fraction = fmt::format("{:.{}f}", value - whole, places);
    if (fraction[0] == '0' && fits(whole + *io_detail::parse_number(fraction)))
      return text + fraction.substr(1);
  }
  char digits[400];  // "0.25", without an exponent
  const auto end_of =
      std::to_chars(digits, digits + sizeof digits, value - whole, std::chars_format::fixed).ptr;
  return text + std::string(digits + 1, end_of);
}

}  // namespace ferrite::quantile_tokenizer
