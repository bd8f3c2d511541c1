// Most rows are plain: fields without quotes, or with quotes only around them. Those are read here, number by
// number, without looking for the ends of fields first. Any other row, including a wrong one, goes through
// CsvScanner, which knows all rules and error messages.
#include "models/quantile_tokenizer/csv_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "io/csv_value.hpp"
#include "io/format.hpp"
#include "models/quantile_tokenizer/dates.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Codes for strings in order of appearance.
class Interner {
 public:
  std::int32_t code(std::string_view text) {
    if (const auto found = codes_.find(text); found != codes_.end()) return found->second;
    return codes_.emplace(text, static_cast<std::int32_t>(codes_.size())).first->second;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all(codes_.size());
    for (const auto& [text, code] : codes_) all[static_cast<std::size_t>(code)] = text;
    return all;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> codes_;
};

class BlockParser {
 public:
  BlockParser(const CsvBlock& block, const CsvColumns& columns)
      : columns_(columns),
        end_(block.text.data() + block.text.size()),
        scanner_(columns.path, columns.delimiter),
        interners_(columns.fields.size()),
        targets_(columns.width) {
    for (const char c : {columns.delimiter, '\n', '\r', '"'})
      ends_field_[static_cast<unsigned char>(c)] = true;
    scanner_.start_at(block.line, columns.width);
    scanner_.feed(block.text);
    scanner_.finish();
    // A row takes a byte per field; fields of many lines make no rows.
    const auto most_rows =
        std::min(static_cast<std::size_t>(block.lines), block.text.size() / columns.width) + 1;
    chunk_.numbers.resize(columns.fields.size());
    chunk_.texts.resize(columns.fields.size());
    for (std::size_t c = 0; c < columns.fields.size(); ++c) {
      Target& target = targets_[columns.fields[c]];
      if (columns.kinds[c] != FieldKind::text) {
        chunk_.numbers[c].resize(most_rows);
        target.numbers = chunk_.numbers[c].data();
        target.dates = is_date(columns.kinds[c]);
      } else {
        chunk_.texts[c].codes.resize(most_rows);
        target.codes = chunk_.texts[c].codes.data();
        target.interner = &interners_[c];
      }
    }
  }

  TableChunk run() && {
    CsvRow row;
    do skip_plain_rows();
    while (take_other_row(row));
    for (std::size_t c = 0; c < columns_.fields.size(); ++c) {
      if (columns_.kinds[c] != FieldKind::text) {
        chunk_.numbers[c].resize(row_);
      } else {
        chunk_.texts[c].codes.resize(row_);
        chunk_.texts[c].distinct = interners_[c].texts();
      }
    }
    chunk_.rows = static_cast<std::int64_t>(row_);
    return std::move(chunk_);
  }

 private:
  /// Where a field goes; nowhere if its column is dropped.
  struct Target {
    double* numbers = nullptr;
    bool dates = false;         // the numbers are
    bool long_numbers = false;  // the last number was too long for the short way, as the next may be
    std::int32_t* codes = nullptr;
    Interner* interner = nullptr;
  };

  void skip_plain_rows() {
    const char* const begin = scanner_.rest().data();
    const char* position = begin;
    std::int64_t rows = 0;
    while (const char* const next = plain_row(position)) {
      position = next;
      ++rows;
      ++row_;
    }
    scanner_.skip(static_cast<std::size_t>(position - begin), rows);
  }

  /// The end of the row at `p`, its fields stored; nullptr if it is not plain.
  const char* plain_row(const char* p) {
    if (p == end_ || *p == '\n' || *p == '\r') return nullptr;
    for (std::size_t f = 0;;) {
      Target& target = targets_[f];
      p = target.numbers ? plain_number(p, target) : plain_text(p, target);
      if (!p) return nullptr;
      if (++f == columns_.width) break;
      if (p == end_ || *p != columns_.delimiter) return nullptr;
      ++p;
    }
    if (p == end_) return p;
    if (*p == '\n') return p + 1;
    return *p == '\r' && p + 1 != end_ && p[1] == '\n' ? p + 2 : nullptr;
  }

  bool at_end_of_field(const char* p) const {
    return p == end_ || ends_field_[static_cast<unsigned char>(*p)];
  }
  std::string_view field_at(const char* p) const {
    const char* next = p;
    while (!at_end_of_field(next)) ++next;
    return {p, static_cast<std::size_t>(next - p)};
  }

  const char* plain_number(const char* p, Target& target) const {
    double& out = target.numbers[row_];
    if (!target.dates) {
      const char* next = nullptr;
      if (!target.long_numbers && end_ - p >= io_detail::short_decimal_reach)
        next = io_detail::read_short_decimal(p, out);
      if (!next || !at_end_of_field(next)) next = long_number(p, target);
      if (next) {
        out = unless_marker(out);
        return next;
      }
    }
    const std::string_view field = field_at(p);
    const auto value = value_of(field, target);
    if (!value) return nullptr;
    out = *value;
    return field.data() + field.size();
  }

  /// By the library, which reads all forms, and 17 digits in the time of two short ways.
  const char* long_number(const char* p, Target& target) const {
    double& out = target.numbers[row_];
    const auto [next, error] = std::from_chars(p, end_, out);
    if (error != std::errc{} || out != out || !at_end_of_field(next)) return nullptr;
    target.long_numbers = next - p > 16;
    return next;
  }

  const char* plain_text(const char* p, const Target& target) const {
    const bool quoted = p != end_ && *p == '"';
    std::string_view field;
    if (quoted) {
      const auto* const close =
          static_cast<const char*>(std::memchr(p + 1, '"', static_cast<std::size_t>(end_ - p - 1)));
      if (!close) return nullptr;
      field = {p + 1, close};
      if (field.find('\n') != field.npos) return nullptr;
    } else {
      field = field_at(p);
    }
    const char* const next = field.data() + field.size() + quoted;
    const bool done = next == end_ || (*next != '"' && at_end_of_field(next));
    if (!done || io_detail::find_invalid_utf8(field) != field.npos) return nullptr;
    if (target.codes)
      target.codes[row_] = columns_.missing.is_missing(field) ? -1 : target.interner->code(field);
    return next;
  }

  bool take_other_row(CsvRow& row) {
    if (!scanner_.next_row(row)) return false;
    for (std::size_t c = 0; c < columns_.fields.size(); ++c) {
      const CsvField& field = row[columns_.fields[c]];
      const Target& target = targets_[columns_.fields[c]];
      if (target.numbers) {
        const auto value = value_of(field.raw, target);
        if (!value) reject(field, c);
        target.numbers[row_] = *value;
      } else {
        target.codes[row_] = columns_.missing.is_missing(field.raw) ? -1
                             : field.escaped                        ? target.interner->code(field.text())
                                                                    : target.interner->code(field.raw);
      }
    }
    ++row_;
    return true;
  }

  double unless_marker(double value) const {
    return MissingValues::without(value, columns_.missing.numbers());
  }
  /// The number or the date of a field.
  std::optional<double> value_of(std::string_view field, const Target& target) const {
    if (columns_.missing.is_missing(field)) return nan;
    if (target.dates) {
      const auto date = parse_date(field);
      return date ? std::optional(date->seconds) : std::nullopt;
    }
    const auto value = io_detail::parse_number(field);
    return value ? std::optional(unless_marker(*value)) : std::nullopt;
  }

  [[noreturn]] void reject(const CsvField& field, std::size_t column) const {
    throw ParseError(fmt::format(
        "[open_table] {}:{}:{}, column {}, field {}: the column is one of {}, by its first rows or by the "
        "fit; "
        "name the field if it means a missing value (--missing), or read the column as text (--text)",
        columns_.path, field.line, field.column, io_detail::in_quotes(columns_.names[column]),
        io_detail::in_quotes(field.raw), is_date(columns_.kinds[column]) ? "dates" : "numbers"));
  }

  const CsvColumns& columns_;
  const char* end_;
  CsvScanner scanner_;
  bool ends_field_[256] = {};
  std::vector<Interner> interners_;
  std::vector<Target> targets_;  // by field of a row
  std::size_t row_ = 0;
  TableChunk chunk_;
};

}  // namespace

TableChunk parse_block(const CsvBlock& block, const CsvColumns& columns) {
  return BlockParser(block, columns).run();
}

}  // namespace ferrite::quantile_tokenizer
