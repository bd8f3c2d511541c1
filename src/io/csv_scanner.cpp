// One pass over the text; an incomplete row is tried again when more text has arrived.
#include "ferrite/io/csv_scanner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/csv_value.hpp"
#include "io/format.hpp"

namespace ferrite {

std::string CsvField::text() const {
  std::string out(raw);
  if (escaped) {
    // The first quote of each pair is dropped.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '"') ++i;
      out[kept++] = raw[i];
    }
    out.resize(kept);
  }
  return out;
}

CsvScanner::CsvScanner(std::string name, char delimiter) : name_(std::move(name)), delimiter_(delimiter) {
  io_detail::check_csv_delimiter("CsvScanner", delimiter);
  for (const char c : {delimiter, '\n', '\r', '"'}) ends_plain_[static_cast<unsigned char>(c)] = true;
}

void CsvScanner::feed(std::string_view chunk) {
  if (position_ == text_.size()) {
    text_ = chunk;
  } else {
    if (text_.data() == carry_.data())
      carry_.erase(0, position_);
    else
      carry_.assign(text_.substr(position_));
    carry_ += chunk;
    text_ = carry_;
  }
  position_ = line_start_ = 0;
}

bool CsvScanner::next_row(CsvRow& row) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (!started_) {
    if (!finished_ && text_.size() < byte_order_mark.size()) return false;
    if (text_.starts_with(byte_order_mark)) position_ = line_start_ = byte_order_mark.size();
    started_ = true;
  }
  if (!finished_ && text_.size() - position_ < retry_size_) return false;
  while (skip_line_end()) continue;
  if (position_ == text_.size()) return false;

  const std::size_t begin = position_;
  const std::int64_t line = line_;
  if (scan_row(row)) {
    check_row(row, begin, line);
    retry_size_ = 0;
    return true;
  }
  position_ = line_start_ = begin;
  line_ = line;
  // Waiting for twice as much text before the next attempt keeps the total linear, however long the row and
  // short the chunks.
  retry_size_ = 2 * (text_.size() - begin);
  return false;
}

bool CsvScanner::skip_line_end() {
  const std::string_view rest = text_.substr(position_, 2);
  const std::size_t length = rest.starts_with('\n') ? 1 : rest == "\r\n" ? 2 : 0;
  if (length == 0) return false;
  position_ += length;
  line_start_ = position_;
  ++line_;
  return true;
}

/// False if the text ends before the row does.
bool CsvScanner::scan_row(CsvRow& row) {
  const std::size_t most = width_ == 0 ? max_fields : width_;
  row.clear();
  for (;;) {
    const std::int64_t start = static_cast<std::int64_t>(position_ - line_start_) + 1;
    if (row.size() == most) {  // before the rest of the row costs anything
      reject(line_, start, fmt::format("field {} of the row", most + 1),
             width_ == 0 ? fmt::format("at most {} are supported", most) : width_rule());
    }
    CsvField& field = row.emplace_back();
    field.line = line_;
    field.column = start;
    if (position_ < text_.size() && text_[position_] == '"') {
      if (!scan_quoted(field)) return false;
    } else {
      scan_plain(field);
    }
    if (position_ == text_.size()) return finished_;
    if (text_[position_] == delimiter_) {
      ++position_;
      continue;
    }
    if (skip_line_end()) return true;
    if (text_[position_] == '\r' && position_ + 1 == text_.size() && !finished_) return false;
    const std::int64_t column = static_cast<std::int64_t>(position_ - line_start_) + 1;
    const std::string found = io_detail::in_quotes(text_.substr(position_, 1));
    if (text_[position_] == '\r')
      reject(line_, column, found, "a carriage return needs a line feed after it");
    if (field.quoted) reject(line_, column, found, "a delimiter or line end must follow the closing quote");
    reject(line_, column, found, "a field with a quote in it must be quoted itself");
  }
}

bool CsvScanner::scan_quoted(CsvField& field) {
  field.quoted = true;
  const std::size_t begin = position_ + 1;
  std::size_t end = text_.find('"', begin);
  while (end != text_.npos && text_.substr(end + 1).starts_with('"')) {
    field.escaped = true;
    end = text_.find('"', end + 2);
  }
  if (end == text_.npos) {
    if (!finished_) return false;
    reject(field.line, field.column, "\"\\\"\"", "the quote is never closed");
  }
  field.raw = text_.substr(begin, end - begin);
  position_ = end + 1;
  if (const auto last = field.raw.rfind('\n'); last != field.raw.npos) {
    line_ += std::count(field.raw.begin(), field.raw.end(), '\n');
    line_start_ = begin + last + 1;
  }
  return true;
}

void CsvScanner::scan_plain(CsvField& field) {
  const std::size_t begin = position_;
  while (position_ < text_.size() && !ends_plain_[static_cast<unsigned char>(text_[position_])]) ++position_;
  field.raw = text_.substr(begin, position_ - begin);
}

void CsvScanner::check_row(const CsvRow& row, std::size_t begin, std::int64_t line) {
  const std::string_view text = text_.substr(begin, position_ - begin);
  if (const std::size_t bad = io_detail::find_invalid_utf8(text); bad != text.npos) {
    const std::string_view before = text.substr(0, bad);
    const std::size_t start = before.rfind('\n') + 1;  // 0 where there is none
    reject(line + std::count(before.begin(), before.end(), '\n'), static_cast<std::int64_t>(bad - start) + 1,
           io_detail::in_quotes(text.substr(bad, 1)),
           "must be UTF-8; if it is text, convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > new.csv");
  }
  if (width_ == 0) {
    width_ = row.size();
    if (width_ == 1 && !row[0].quoted) suspect_ = io_detail::suspected_delimiter(row[0].raw, delimiter_);
  }
  if (row.size() != width_) reject(line, 1, fmt::format("row of {} fields", row.size()), width_rule());
}

std::string CsvScanner::width_rule() const {
  const std::string rule = fmt::format("{} are needed, as in the first row", width_);
  if (suspect_ != 0)
    return rule +
           fmt::format(
               "; that holds {0}: if it is the delimiter, say so (--delimiter {0}); in C++ the config has it",
               io_detail::delimiter_name(suspect_));
  return rule + fmt::format(
                    "; texts with {} in them must be quoted, and --delimiter, or the config in C++, names "
                    "another delimiter",
                    io_detail::delimiter_name(delimiter_));
}

void CsvScanner::reject(std::int64_t line, std::int64_t column, std::string_view found,
                        std::string_view needed) const {
  const std::string place = fmt::format("{}:{}:{}", name_, line, column);
  io_detail::Source{"read_csv", place, nullptr}.reject(found, needed);
}

void append_csv_field(std::string& out, std::string_view text, char delimiter) {
  const char special[] = {delimiter, '"', '\n', '\r'};
  if (!text.empty() && text.find_first_of({special, 4}) == text.npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace ferrite
