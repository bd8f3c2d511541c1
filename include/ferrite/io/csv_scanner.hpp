// CsvScanner: splits text into rows and fields, whole or chunk by chunk. It knows quotes and line ends, not
// numbers or headers; CsvTable (csv.hpp) stands on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// One field of a row, as it stands in the text between its quotes, if any.
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
/// number of fields, which is at most max_fields. A byte-order mark is dropped and empty lines are skipped.
/// Where the first row is one field with another usual delimiter in it, errors about later rows say so. What
/// breaks these rules or is not UTF-8 is a ParseError "[read_csv] file:line:column, what was found: what
/// is needed".
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
  /// A field takes one byte of text and forty of a CsvRow: the limit bounds what a hostile row costs.
  static constexpr std::size_t max_fields = std::size_t{1} << 18;

  /// `name` stands for the file in messages. Throws ValueError for a delimiter that is not ASCII or is a
  /// quote, a line end, a letter, a digit, a sign or a point.
  explicit CsvScanner(std::string name, char delimiter = ',');
  CsvScanner(const CsvScanner&) = delete;
  CsvScanner& operator=(const CsvScanner&) = delete;

  /// Before the first feed: the text is a part of a file, begins at this line of it, and its rows have
  /// `width` fields. So parts of a file can be scanned at the same time.
  void start_at(std::int64_t line, std::size_t width) {
    line_ = line;
    width_ = width;
    started_ = true;
  }

  /// Adds text, which must stay alive until the next feed. Rows may straddle chunks; what next_row has not
  /// taken from the previous chunk is copied.
  void feed(std::string_view chunk);
  /// Says that no more text comes, so that a last row without a line end is complete.
  void finish() { finished_ = true; }
  /// The next row; false if more text is needed or, after finish(), at the end. Fields point into the text
  /// and are valid until the next feed.
  bool next_row(CsvRow& row);

  /// For callers that know a shorter way for some rows: the text that next_row has not taken, and that so
  /// many bytes of it, whole rows on so many lines, are done.
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
  /// How many fields a row must have.
  std::string width_rule() const;
  [[noreturn]] void reject(std::int64_t line, std::int64_t column, std::string_view found,
                           std::string_view needed) const;

  std::string name_;
  char delimiter_;
  bool ends_plain_[256] = {};  // characters that a field without quotes does not hold
  std::string carry_;          // the text, where it had to be joined from several chunks
  std::string_view text_;      // what is being scanned: a chunk, or carry_
  std::size_t position_ = 0;
  std::size_t retry_size_ = 0;  // no new attempt at an incomplete row before this much text is there
  std::size_t line_start_ = 0;
  std::int64_t line_ = 1;
  std::size_t width_ = 0;
  char suspect_ = 0;  // what may be the true delimiter, by the first row
  bool started_ = false;
  bool finished_ = false;
};

/// Appends `text` as a CSV field: quoted if it holds a delimiter, a quote, a line end or is empty.
FERRITE_API void append_csv_field(std::string& out, std::string_view text, char delimiter = ',');

}  // namespace ferrite
