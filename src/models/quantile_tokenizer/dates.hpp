// Dates of ISO 8601 as numbers, seconds since 1970-01-01 00:00:00 UTC, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ferrite::quantile_tokenizer {

struct Moment {
  double seconds = 0;
  bool has_time = false;  // not the day alone
};

/// "2024-01-31", optionally followed by T or a space and a time: "10:30", "10:30:15", "10:30:15.25", and then
/// Z, +02, +0200 or +02:00. A time without an offset is taken as UTC. Spaces around are allowed. Nothing for
/// any other text, including days that do not exist.
std::optional<Moment> parse_date(std::string_view text);

/// The date as text that parse_date reads as a number from `least` to `greatest`, a range that contains
/// `seconds`: a day alone if one lies in it and `days` is true, else with a time, with as few decimals of a
/// second as possible. Years outside 0 to 9999, which ISO 8601 does not have, are written as numbers of
/// seconds.
std::string date_text(double seconds, bool days, double least, double greatest);
/// Of the moment itself.
inline std::string date_text(double seconds, bool days) { return date_text(seconds, days, seconds, seconds); }

}  // namespace ferrite::quantile_tokenizer
