// Tables of numbers and text, read from files in chunks, so that none has to fit into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/core/export.hpp"
#include "ferrite/io/csv.hpp"

namespace ferrite::quantile_tokenizer {

/// What the fields of a column are. Dates of ISO 8601, days or with a time, are read as numbers: seconds
/// since 1970-01-01 00:00:00 UTC.
enum class FieldKind : std::uint8_t { number, text, date, date_time };
constexpr bool is_date(FieldKind kind) { return kind == FieldKind::date || kind == FieldKind::date_time; }

/// Text by code: codes[row] is a place in `distinct`, or -1 where the field is missing.
struct TextColumn {
  std::vector<std::int32_t> codes;
  std::vector<std::string> distinct;
};

/// Some rows of a table. Column c is in texts[c] if its kind is text, else in numbers[c] (missing fields are
/// NaN).
struct TableChunk {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::vector<std::vector<double>> numbers;
  std::vector<TextColumn> texts;
};

/// How an array holds the table: [rows, columns], or [columns, rows].
enum class TableLayout : std::uint8_t { rows, columns };

struct TableConfig {
  CsvHeader header = CsvHeader::automatic;
  char delimiter = ',';
  /// Fields that mean a missing value, beside the empty one, NA, N/A, null and nan; case does not matter.
  /// Those that are numbers are compared as such, in every kind of file.
  std::vector<std::string> missing;
  /// Columns of these names are left out.
  std::vector<std::string> drop;
  /// The columns to read, in this order; none stands for all, in the order of the table.
  std::vector<std::string> columns;
  /// Columns of these names are text, numbers or dates, whatever they look like.
  std::vector<std::string> text, number, date;
  /// Of several columns of one name in a CSV file the second becomes name.1, the third name.2, and so on;
  /// otherwise they are an error.
  bool rename_duplicates = false;
  /// So many rows decide which columns of a CSV file are numbers or dates; text in such a column is an error
  /// later.
  std::int64_t inspected_rows = 10'000;
  TableLayout layout = TableLayout::rows;
  /// The tensor of an .npz or .safetensors file; none: its only matrix, or all its vectors, as columns.
  std::string array;
  /// About so many bytes of text are read at a time; rows of an array times columns times 8 make a chunk.
  std::int64_t chunk_bytes = 32 << 20;
};

/// A table that can be read from the start several times. One thread at a time.
class FERRITE_API TableSource {
 public:
  virtual ~TableSource() = default;
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<FieldKind>& kinds() const { return kinds_; }
  /// The next rows, at least one; null at the end. Throws ParseError with file, line and column for a bad
  /// field.
  virtual std::shared_ptr<const TableChunk> next() = 0;
  virtual void rewind() = 0;
  /// How much of it has been read, from 0 to 1.
  virtual double progress() const = 0;
  /// Changes with the file (path, size, time of change) and with how it is read.
  const std::string& fingerprint() const { return fingerprint_; }
  /// TableConfig::missing, in lower case and ascending.
  const std::vector<std::string>& missing() const { return missing_; }
  /// What looks as if the table should be read otherwise, a sentence each, with the option that does it.
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::vector<std::string> names_;
  std::vector<FieldKind> kinds_;
  std::vector<std::string> missing_;
  std::vector<std::string> notes_;
  std::string fingerprint_;
};

/// By the file's name: .csv, .tsv, .txt; .npy, .npz, .safetensors; .parquet where ferrite was built with
/// Arrow. Throws IoError, ParseError, and ValueError for a name or an option that cannot be,
/// such as columns that the table does not have, which it names.
FERRITE_API std::unique_ptr<TableSource> open_table(const std::filesystem::path& path,
                                                    const TableConfig& config = {});

/// The same table, kept in memory the first time it is read to its end, if that takes no more than `limit`
/// bytes: reading it again costs nothing then.
FERRITE_API std::unique_ptr<TableSource> kept_in_memory(std::unique_ptr<TableSource> source,
                                                        std::int64_t limit);

}  // namespace ferrite::quantile_tokenizer
