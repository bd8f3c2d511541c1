// What the first rows of a CSV file show: names, kinds of columns, the start of the data, and suspicious
// signs.
#pragma once

#include "models/quantile_tokenizer/csv_block.hpp"

namespace ferrite::quantile_tokenizer {

/// What the fields of a column have been so far.
class ColumnGuess {
 public:
  void add(const CsvField& field, const MissingValues& missing);
  /// The fields of another file as well.
  void add(const ColumnGuess& later);

  FieldKind kind() const;
  /// A sentence about a column that is text because of a few fields; empty for all others.
  std::string note(const std::string& name) const;

 private:
  void add_odd(std::string_view text);

  static constexpr std::size_t most_odd = 5;
  std::int64_t numbers_ = 0, dates_ = 0, others_ = 0;
  bool has_time_ = false;
  std::vector<std::string> odd_;  // different texts that are neither; one more than are named
};

struct CsvInspection {
  CsvColumns columns;
  std::vector<std::string> notes;    // see TableSource::notes; those about `guesses` are not among them
  std::vector<std::size_t> untold;   // columns whose kind no option says
  std::vector<ColumnGuess> guesses;  // of each of these
  std::int64_t inspected = 0;        // rows that were guessed from
  std::size_t data_begin = 0;        // in the text
  std::int64_t data_line = 1;
};

/// Throws ParseError with file, line and column for unreadable text, and with what it is for a file of
/// another format; ValueError for options that name missing columns.
CsvInspection inspect_csv(std::string_view text, const std::filesystem::path& path,
                          const TableConfig& config);
/// Gives the untold columns the kinds of the guesses, and notes what is odd about them.
void apply_guesses(CsvInspection& inspection);

/// .csv, .tsv, .txt
bool is_csv(const std::filesystem::path& path);
/// The config with the delimiter that the file's name says.
TableConfig csv_config(const std::filesystem::path& path, TableConfig config);

}  // namespace ferrite::quantile_tokenizer
