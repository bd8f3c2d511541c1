// Reads a block of whole rows of a CSV file into columns, in one pass over the text.
#pragma once

#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

struct CsvBlock {
  std::string_view text;
  std::int64_t line = 1;   // its first, in the file
  std::int64_t lines = 0;  // how many begin in it
};

/// The columns of a CSV file and what is in them.
struct CsvColumns {
  std::string path;
  char delimiter = ',';
  std::size_t width = 0;            // fields of a row
  std::vector<std::size_t> fields;  // of each column: which one of a row it is
  std::vector<std::string> names;
  std::vector<FieldKind> kinds;
  MissingValues missing;
};

/// Throws ParseError with file, line and column for the first invalid row.
TableChunk parse_block(const CsvBlock& block, const CsvColumns& columns);

}  // namespace ferrite::quantile_tokenizer
