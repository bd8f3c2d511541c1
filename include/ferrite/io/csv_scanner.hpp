// CsvScanner: splits text into rows and fields, whole or chunk by chunk. It knows quotes and line ends, but
// not numbers or headers; CsvTable (csv.hpp) uses it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// One field of a row, as it appears in the text, without surrounding quotes.
struct FERRITE_API CsvField {
  std::string_view raw;
  bool quoted = false;
  /// True if raw holds doubled quotes, which text() undoes.
  bool escaped = false;
  /// Where the field starts: 1-based line, and byte in that line.
  std::int64_t line = 0;
  std::int64_t column = 0;

  std::string text() const;
};

using CsvRow = std::vector<CsvField>;

/// RFC 4180: fields may be quoted, a quote inside is doubled, rows end in LF or CRLF, all rows have the same
/// number of fields, at most max_fields. A byte-order mark is dropped and empty lines are skipped. If the
/// first row is one field that contains another common delimiter, errors about later rows say so. Text that
/// breaks these rules or is not UTF-8 is a ParseError "[read_csv] file:line:column, what was found: what is
/// needed".
///
///     CsvScanner scanner("log.csv", ',');
///     CsvRow row;
///     while (read(chunk)) {
///       scanner.feed(chunk);
///       while (scanner.next_row(row)) use(row);
///     }
///     scanner.finish();
///     while (scanner.next_row(row)) use(row);
class FERRITE_API CsvScanner {
 public:
  /// A field takes one byte of text and forty of a CsvRow: the limit bounds the cost of a hostile row.
  static constexpr std::size_t max_fields = std::size_t{1} << 18;

  /// `name` stands for the file in messages. Throws ValueError for a delimiter that is not ASCII or is a
  /// quote, a line end, a letter, a digit, a sign or a point.
  explicit CsvScanner(std::string name, char delimiter = ',');
  CsvScanner(const CsvScanner&) = delete;
  CsvScanner& operator=(const CsvScanner&) = delete;

  /// Before the first feed: the text is part of a file, begins at this line of it, and its rows have `width`
  /// fields. This lets several threads scan parts of a file at the same time.
  void start_at(std::int64_t line, std::size_t width) {
    line_ = line;
    width_ = width;
    started_ = true;
  }

  /// Adds text, which must stay alive until the next feed. Rows may straddle chunks; text of the previous
  /// chunk that next_row has not consumed is copied.
  void feed(std::string_view chunk);
  /// Declares the end of the text, so that a last row without a line end is complete.
  void finish() { finished_ = true; }
  /// The next row; false if more text is needed or, after finish(), at the end. Fields point into the text
  /// and are valid until the next feed.
  bool next_row(CsvRow& row);

  /// For callers with a faster path for some rows: the text that next_row has not consumed, and a way to
  /// report that a number of its bytes, whole rows on a number of lines, are done.
  std::string_view rest() const { return text_.substr(position_); }
  void skip(std::size_t bytes, std::int64_t lines) {
    position_ += bytes;
    line_start_ = position_;
    line_ += lines;
  }

 private:
  bool scan_row(CsvRow& row);
  bool scan_quoted(CsvField& field);
  void scan_plain(CsvField& field);
  bool skip_line_end();
  void check_row(const CsvRow& row, std::size_t begin, std::int64_t line);
  /// The number of fields that a row must have.
  std::string width_rule() const;
  [[noreturn]] void reject(std::int64_t line, std::int64_t column, std::string_view found,
                           std::string_view needed) const;

  std::string name_;
  char delimiter_;
  bool ends_plain_[256] = {};  // characters that end a field without quotes
  std::string carry_;          // the text, where it had to be joined from several chunks
  std::string_view text_;      // the text being scanned: a chunk, or carry_
  std::size_t position_ = 0;
  std::size_t retry_size_ = 0;  // no new attempt at an incomplete row until this much text is there
  std::size_t line_start_ = 0;
  std::int64_t line_ = 1;
  std::size_t width_ = 0;
  char suspect_ = 0;  // what may be the true delimiter, judging by the first row
  bool started_ = false;
  bool finished_ = false;
};

/// Appends `text` as a CSV field: quoted if it holds a delimiter, a quote, a line end or is empty.
FERRITE_API void append_csv_field(std::string& out, std::string_view text, char delimiter = ',');

}  // namespace ferrite
