// What the first rows of a CSV file tell: names, kinds of columns, where the data begin, and what looks
// wrong.
#pragma once

#include "models/quantile_tokenizer/csv_block.hpp"

namespace ferrite::quantile_tokenizer {

struct CsvInspection {
  CsvColumns columns;
  std::vector<std::string> notes;  // see TableSource::notes
  std::size_t data_begin = 0;      // in the text
  std::int64_t data_line = 1;
};

/// Throws ParseError with file, line and column for what cannot be read, ValueError for options that name
/// columns which are not there.
CsvInspection inspect_csv(std::string_view text, const std::filesystem::path& path,
                          const TableConfig& config);

}  // namespace ferrite::quantile_tokenizer
