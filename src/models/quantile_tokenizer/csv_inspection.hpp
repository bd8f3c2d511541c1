// What the first rows of a CSV file show: names, kinds of columns, the start of the data, and suspicious
// signs.
#pragma once

#include "models/quantile_tokenizer/csv_block.hpp"

namespace ferrite::quantile_tokenizer {

struct CsvInspection {
  CsvColumns columns;
  std::vector<std::string> notes;  // see TableSource::notes
  std::size_t data_begin = 0;      // in the text
  std::int64_t data_line = 1;
};

/// Throws ParseError with file, line and column for unreadable text, ValueError for options that name missing
/// columns.
CsvInspection inspect_csv(std::string_view text, const std::filesystem::path& path,
                          const TableConfig& config);

}  // namespace ferrite::quantile_tokenizer
