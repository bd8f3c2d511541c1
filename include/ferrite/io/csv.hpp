// CSV files of numbers: read into columns of doubles, turned into tensors, written back.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/io/csv_scanner.hpp"
#include "ferrite/io/host_tensor.hpp"

namespace ferrite {

/// automatic: the first row is a header if one of its fields is neither a number nor missing.
enum class CsvHeader : std::uint8_t { automatic, present, absent };
/// How an empty field, NA, N/A, null or nan (any case) is read: as an error, or as NaN.
enum class CsvMissing : std::uint8_t { error, as_nan };

struct CsvConfig {
  CsvHeader header = CsvHeader::automatic;
  char delimiter = ',';
  CsvMissing missing = CsvMissing::error;
  /// The columns to read, in this order; an empty list means all. Other columns may hold anything.
  std::vector<std::string> columns;

  CsvConfig with_header(CsvHeader value) const { return detail::with(*this, &CsvConfig::header, value); }
  CsvConfig with_delimiter(char value) const { return detail::with(*this, &CsvConfig::delimiter, value); }
  CsvConfig with_missing(CsvMissing value) const { return detail::with(*this, &CsvConfig::missing, value); }
  CsvConfig with_columns(std::vector<std::string> names) const {
    return detail::with(*this, &CsvConfig::columns, std::move(names));
  }
};

struct FERRITE_API CsvTable {
  std::vector<std::string> columns;
  /// One vector per column, all of the same length.
  std::vector<std::vector<double>> values;

  std::int64_t rows() const { return values.empty() ? 0 : static_cast<std::int64_t>(values[0].size()); }
  /// Throws ValueError listing the valid names.
  const std::vector<double>& column(std::string_view name) const;

  /// Shape [rows, names.size()]; without names, all columns. Floating dtypes round. For integers and bool, a
  /// value that the dtype cannot hold exactly is a ValueError naming column and row.
  HostTensor to_tensor(DType dtype) const { return to_tensor(columns, dtype); }
  HostTensor to_tensor(std::span<const std::string> names, DType dtype) const;
  /// One column, shape [rows].
  HostTensor column_tensor(std::string_view name, DType dtype) const;
};

/// Columns without a header are called c0, c1, ... Numbers are decimal, "inf" included, with spaces around
/// them allowed, and become the nearest double: 1e400 is infinite, 1e-400 is 0. Throws IoError if the file
/// cannot be opened, else ParseError with file:line:column, the column's name and the rule. A file without a
/// data row is a ParseError too.
FERRITE_API CsvTable read_csv(const std::filesystem::path& path, const CsvConfig& config = {});
/// The same from memory; `name` stands for the file in messages.
FERRITE_API CsvTable read_csv(std::string_view text, std::string_view name, const CsvConfig& config = {});

/// Writes atomically, each number with the fewest digits that read back as the same double. Only the
/// delimiter of the config matters, and CsvHeader::absent. Throws ValueError if the table has no column, no
/// row, columns of different lengths, a different number of names and columns, or more than
/// CsvScanner::max_fields.
FERRITE_API void write_csv(const std::filesystem::path& path, const CsvTable& table,
                           const CsvConfig& config = {});

}  // namespace ferrite
