// A table in memory, with its cells as they came: numbers, texts and dates. The readers are those of
// quantile_tokenizer/table.hpp.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ferrite/models/quantile_tokenizer/table.hpp"

namespace ferrite::pfn {

using quantile_tokenizer::FieldKind;
using quantile_tokenizer::TableConfig;
using quantile_tokenizer::TableSource;
using quantile_tokenizer::TextColumn;

/// Texts are in `text` if the kind is text; else values are in `numbers`, where NaN is missing and dates are
/// seconds since 1970.
struct RawColumn {
  std::string name;
  FieldKind kind = FieldKind::number;
  std::vector<double> numbers;
  TextColumn text;

  bool is_text() const { return kind == FieldKind::text; }
};

/// A value.
class FERRITE_API Table {
 public:
  Table() = default;

  /// Each throws ValueError if there is such a column or if it has another number of rows than the others.
  Table& add_numbers(std::string name, std::vector<double> values);
  /// Seconds since 1970-01-01 00:00:00 UTC.
  Table& add_dates(std::string name, std::vector<double> seconds);
  /// Empty texts are missing.
  Table& add_texts(std::string name, std::span<const std::string> values);
  /// Also ValueError for codes of texts that it does not have.
  Table& add(RawColumn column);

  std::int64_t rows() const { return rows_; }
  const std::vector<RawColumn>& columns() const { return columns_; }
  /// Null if there is none of this name.
  const RawColumn* find(std::string_view name) const;
  /// What means a missing cell where the table was read (TableConfig::missing): encoders keep it for other
  /// tables of the same kind.
  const std::vector<std::string>& missing() const { return missing_; }
  Table& set_missing(std::vector<std::string> markers) {
    missing_ = std::move(markers);
    return *this;
  }
  /// The rows of these places, in this order; ValueError for a place that the table does not have.
  Table take(std::span<const std::int64_t> rows) const;

 private:
  std::vector<RawColumn> columns_;
  std::unordered_map<std::string, std::size_t> places_;  // by name
  std::vector<std::string> missing_;
  std::int64_t rows_ = 0;
};

/// All rows from the start. Throws what the source throws.
FERRITE_API Table read_table(TableSource& source);
/// Opens and reads a file; all rows decide which columns are numbers or dates, if the config leaves
/// inspected_rows as it is. Throws what open_table throws.
FERRITE_API Table read_table(const std::filesystem::path& path, TableConfig config = {});

}  // namespace ferrite::pfn
