// Counts the values of a column while it is read, to decide whether and how it is one of categories.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <span>
#include <unordered_map>

#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"

namespace ferrite::quantile_tokenizer {

/// Digits, in groups of the lengths that `pattern` has, with its separators: "dddd-dd-dd".
inline bool has_form(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (pattern[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i]) return false;
  return true;
}

inline bool looks_like_date(std::string_view text) {
  for (const std::string_view date : {"dddd-dd-dd", "dddd/dd/dd", "dd/dd/dddd", "dd.dd.dddd", "dd-dd-dddd"}) {
    if (!has_form(text.substr(0, date.size()), date)) continue;
    const std::string_view rest = text.substr(date.size());
    return rest.empty() ||
           (rest.size() >= 6 && (rest[0] == ' ' || rest[0] == 'T') && has_form(rest.substr(1, 5), "dd:dd"));
  }
  return false;
}

/// The integers of a column while there are few.
class IntegerCounts {
 public:
  void add(std::span<const double> values, std::int64_t limit) {
    for (const double value : values) {
      if (!possible_) return;
      if (value != value) {
        ++missing_;
      } else if (value != std::trunc(value) || std::abs(value) > 0x1p53) {
        possible_ = false;
      } else {
        ++counts_[value + 0.0];
        possible_ = static_cast<std::int64_t>(counts_.size()) <= limit;
      }
    }
  }
  bool is_category() const {
    std::int64_t rows = 0;
    for (const auto& [value, count] : counts_) rows += count;
    return possible_ && !counts_.empty() && rows >= 10 * static_cast<std::int64_t>(counts_.size());
  }
  CategoryFit category() const {
    CategoryFit fit;
    fit.missing = missing_;
    for (const auto& [value, count] : counts_) {
      char digits[32];
      fit.names.emplace_back(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
      fit.numbers.push_back(value);
      fit.counts.push_back(count);
    }
    return fit;
  }

 private:
  bool possible_ = true;
  std::map<double, std::int64_t> counts_;
  std::int64_t missing_ = 0;
};

/// The texts of a column and how often each appears.
class TextCounts {
 public:
  void add(const TextColumn& column) {
    std::vector<std::int64_t> counts(column.distinct.size());
    for (const std::int32_t code : column.codes)
      ++(code < 0 ? missing_ : counts[static_cast<std::size_t>(code)]);
    for (std::size_t i = 0; i < counts.size(); ++i) counts_[column.distinct[i]] += counts[i];
  }
  std::int64_t size() const { return static_cast<std::int64_t>(counts_.size()); }
  bool all_dates() const {
    return !counts_.empty() && std::all_of(counts_.begin(), counts_.end(),
                                           [](const auto& entry) { return looks_like_date(entry.first); });
  }
  CategoryFit category(std::int64_t most) const {
    std::vector<std::pair<std::string, std::int64_t>> kept(counts_.begin(), counts_.end());
    std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    CategoryFit fit;
    fit.missing = missing_;
    for (std::size_t i = static_cast<std::size_t>(most); i < kept.size(); ++i) fit.dropped += kept[i].second;
    kept.resize(std::min(kept.size(), static_cast<std::size_t>(most)));
    std::sort(kept.begin(), kept.end());
    for (auto& [name, count] : kept) {
      fit.names.push_back(std::move(name));
      fit.counts.push_back(count);
    }
    return fit;
  }

 private:
  std::unordered_map<std::string, std::int64_t> counts_;
  std::int64_t missing_ = 0;
};

}  // namespace ferrite::quantile_tokenizer
