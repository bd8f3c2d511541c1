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

/// "2024-01-31", or with a time behind a T or a space: "10:30", "10:30:15", "10:30:15.25", and Z, +02, +0200
/// or +02:00 behind that. A time without an offset is taken as UTC. Spaces around are allowed; nothing for
/// all else, days that no calendar has included.
std::optional<Moment> parse_date(std::string_view text);

/// The date as text that parse_date reads as a number from `least` to `greatest`, which `seconds` is one of:
/// the day alone if one lies there and `days` is true, else with a time, in as few decimals of a second
/// as will do. Years other than 0 to 9999, which ISO 8601 does not know, are left as numbers of seconds.
std::string date_text(double seconds, bool days, double least, double greatest);
/// Of the moment itself.
inline std::string date_text(double seconds, bool days) { return date_text(seconds, days, seconds, seconds); }

}  // namespace ferrite::quantile_tokenizer
