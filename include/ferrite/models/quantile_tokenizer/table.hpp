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

/// The kind of a column's fields. Dates of ISO 8601, with or without a time, are read as numbers: seconds
/// since 1970-01-01 00:00:00 UTC.
enum class FieldKind : std::uint8_t { number, text, date, date_time };
constexpr bool is_date(FieldKind kind) { return kind == FieldKind::date || kind == FieldKind::date_time; }

/// Text by code: codes[row] is a place in `distinct`, or -1 if the field is missing.
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
  /// Of a CSV file; 0: a tab in a .tsv file, else a comma.
  char delimiter = 0;
  /// Fields that mean a missing value, beside the empty one, NA, N/A, null and nan; case does not matter.
  /// Markers that are numbers are compared by value, in every kind of file.
  std::vector<std::string> missing;
  /// Columns of these names are left out.
  std::vector<std::string> drop;
  /// The columns to read, in this order; an empty list means all, in the order of the table.
  std::vector<std::string> columns;
  /// Columns of these names are read as text, numbers or dates, whatever they look like.
  std::vector<std::string> text, number, date;
  /// If several columns of a CSV file share a name, the second becomes name.1, the third name.2, and so on;
  /// otherwise they are an error.
  bool rename_duplicates = false;
  /// This many rows decide which columns of a CSV file are numbers or dates; later text in such a column is
  /// an error.
  std::int64_t inspected_rows = 10'000;
  TableLayout layout = TableLayout::rows;
  /// The tensor of an .npz or .safetensors file; empty: its only matrix, or all its vectors, as columns.
  std::string array;
  /// About this many bytes of text are read at a time. A chunk of an array counts rows times columns times 8.
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
  /// Signs that the table should be read differently, one sentence each, with the option to use.
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  std::vector<std::string> names_;
  std::vector<FieldKind> kinds_;
  std::vector<std::string> missing_;
  std::vector<std::string> notes_;
  std::string fingerprint_;
};

/// Chosen by the file's name, in small or capital letters: .csv, .tsv, .txt; .npy, .npz, .safetensors;
/// .parquet if ferrite was built with Arrow. Throws IoError, ParseError, and ValueError for an invalid name
/// or option, such as columns that the table does not have, which it names.
FERRITE_API std::unique_ptr<TableSource> open_table(const std::filesystem::path& path,
                                                    const TableConfig& config = {});

/// Why .parquet files cannot be read, and what to do about it; empty if they can.
FERRITE_API std::string parquet_unavailable_reason();

/// Several files as one table: the rows of the first, then those of the second, and so on, read as if they
/// were in one file. Columns are found by name, in the order of the first file; a header is in every file or
/// in none. Throws what open_table throws; ValueError, before anything is read, for a file whose columns have
/// other names or kinds than those of the first, and names them; IoError for a file that changes while the
/// table is in use.
FERRITE_API std::unique_ptr<TableSource> open_tables(const std::vector<std::filesystem::path>& paths,
                                                     const TableConfig& config = {});

/// The same table, kept in memory when it is first read to its end, if that takes at most `limit` bytes.
/// Reading it again then costs nothing.
FERRITE_API std::unique_ptr<TableSource> kept_in_memory(std::unique_ptr<TableSource> source,
                                                        std::int64_t limit);

}  // namespace ferrite::quantile_tokenizer
