// TableTokenizer: turns whole tables into tokens. Columns of numbers go through a QuantileTokenizer on a
// backend, columns of text and of few integers through dictionaries. Tables larger than memory are read in
// chunks.
#pragma once

#include <functional>
#include <map>

#include "ferrite/io/safetensors.hpp"
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"
#include "ferrite/models/quantile_tokenizer/table.hpp"

namespace ferrite::quantile_tokenizer {

/// How a column was classified. Dates of ISO 8601 (2024-01-31, with or without a time) are binned as numbers;
/// dates in other forms (31/01/2024) are texts.
enum class ColumnKind : std::uint8_t {
  numeric,
  integer_category,
  text_category,
  date_category,
  date,
  date_time
};
FERRITE_API std::string_view to_string(ColumnKind kind);
constexpr int count_of(ColumnKind) { return 6; }
constexpr bool is_date(ColumnKind kind) { return kind == ColumnKind::date || kind == ColumnKind::date_time; }
/// Columns of numbers and dates; the others have categories.
constexpr bool is_binned(ColumnKind kind) { return kind == ColumnKind::numeric || is_date(kind); }

/// The categories of a column; the token of a category is its place. Which ones are kept (the most frequent)
/// and their order (by bytes; integers by value) do not depend on the order of the rows.
struct CategoryFit {
  std::vector<std::string> names;
  std::vector<std::int64_t> counts;
  std::vector<double> numbers;  // of integer categories
  std::int64_t missing = 0;
  std::int64_t dropped = 0;  // rows of categories that were not kept: unknown
  std::int64_t rows() const;
};

struct TableColumn {
  std::string name;
  ColumnKind kind = ColumnKind::numeric;
  std::size_t place = 0;  // in numeric().columns() or in categories()
};

struct TableFitConfig {
  TokenizerConfig tokenizer;
  /// If there are more categories than this, the rarest become unknown.
  std::int64_t most_categories = 254;
  /// Columns of integers with at most this many different values, each ten times on average, are categories.
  std::int64_t integer_categories = 20;
  /// Limit on the numbers kept in memory while a table is fitted, in bytes; a few columns of them are copied
  /// at a time. Beyond it a fit reads the table twice, and a third time for the statistics.
  std::int64_t memory_limit = std::int64_t{4} << 30;
  /// More different texts than this in one column are an error: it is not a category.
  std::int64_t most_texts = 1 << 20;
};

/// "reading", "refining", "counting", "writing", and the share that is done.
using TableProgress = std::function<void(std::string_view stage, double share)>;

/// The part of the work that runs on a backend. `columns` holds the columns of numbers one after the other,
/// each of `rows`.
class FERRITE_API TableEngine {
 public:
  virtual ~TableEngine() = default;
  virtual QuantileTokenizer fit(std::span<const double> columns, std::int64_t rows,
                                const TokenizerConfig& config, std::vector<std::string> names) = 0;
  /// Also the tokens [rows, columns], u8, u16 or i32.
  virtual std::pair<QuantileTokenizer, HostTensor> fit_transform(std::span<const double> columns,
                                                                 std::int64_t rows,
                                                                 const TokenizerConfig& config,
                                                                 std::vector<std::string> names) = 0;
  virtual std::vector<RankSummary> summarize(std::span<const double> columns, std::int64_t rows,
                                             double rank_error) = 0;
  /// # Shapes: -> tokens [rows, columns], u8, u16 or i32.
  virtual HostTensor transform(const QuantileTokenizer& tokenizer, std::span<const double> columns,
                               std::int64_t rows) = 0;
};

template <class B>
class TableEngineOn final : public TableEngine {
 public:
  explicit TableEngineOn(B& backend) : backend_(backend) {}

  QuantileTokenizer fit(std::span<const double> columns, std::int64_t rows, const TokenizerConfig& config,
                        std::vector<std::string> names) override {
    return QuantileTokenizer::fit(matrix(columns, rows), config, std::move(names));
  }
  std::pair<QuantileTokenizer, HostTensor> fit_transform(std::span<const double> columns, std::int64_t rows,
                                                         const TokenizerConfig& config,
                                                         std::vector<std::string> names) override {
    const Tensor<B> x = matrix(columns, rows);
    QuantileTokenizer fitted = QuantileTokenizer::fit(x, config, std::move(names));
    HostTensor tokens = to_host(fitted.transform(x));
    return {std::move(fitted), std::move(tokens)};
  }
  std::vector<RankSummary> summarize(std::span<const double> columns, std::int64_t rows,
                                     double rank_error) override {
    return QuantileTokenizer::summarize(matrix(columns, rows), rank_error);
  }
  HostTensor transform(const QuantileTokenizer& tokenizer, std::span<const double> columns,
                       std::int64_t rows) override {
    return to_host(tokenizer.transform(matrix(columns, rows)));
  }

 private:
  Tensor<B> matrix(std::span<const double> columns, std::int64_t rows) {
    const auto count = static_cast<std::int64_t>(columns.size()) / rows;
    return transpose(from_span(backend_, columns, {count, rows}), 0, 1);
  }
  B& backend_;
};

/// A value. The tokens of a column are its bins or categories; then one for missing and one for unknown
/// values, the same in every column (but see MissingPolicy::last_bin).
class FERRITE_API TableTokenizer {
 public:
  /// Reads the source from its start, once or more (see memory_limit). Throws what the source throws, and
  /// ValueError for invalid configs and for columns with too many texts.
  static TableTokenizer fit(TableSource& source, TableEngine& engine, const TableFitConfig& config = {},
                            const TableProgress& progress = {});
  /// Columns of numbers only.
  explicit TableTokenizer(QuantileTokenizer numeric);
  /// `missing` are the markers of missing values in the table, see TableConfig. ValueError if the parts do
  /// not match: every column needs its own fit, and every fit a column.
  TableTokenizer(std::vector<TableColumn> columns, QuantileTokenizer numeric,
                 std::vector<CategoryFit> categories, std::vector<std::string> missing = {});

  const std::vector<TableColumn>& columns() const { return columns_; }
  const QuantileTokenizer& numeric() const { return numeric_; }
  const std::vector<CategoryFit>& categories() const { return categories_; }
  const std::vector<std::string>& missing() const { return missing_; }
  /// For columns of numbers, and for those of categories: they differ with MissingPolicy::last_bin.
  std::int64_t missing_token() const { return numeric_.missing_token(); }
  std::int64_t missing_category_token() const { return numeric_.unknown_token() - 1; }
  std::int64_t unknown_token() const { return numeric_.unknown_token(); }
  TokenWidth width() const { return numeric_.width(); }

  /// `config` with the columns of the fit, their kinds and its markers of missing values, for reading a table
  /// to transform. That table may have more columns, in another order.
  TableConfig reading(TableConfig config) const;
  /// ValueError naming the differences, unless the source has the columns of the fit, in its order.
  void check_source(const TableSource& source) const;
  /// # Shapes: -> tokens [rows, columns], u8, u16 or i32. The chunk is one of a checked source.
  HostTensor transform(const TableChunk& chunk, TableEngine& engine) const;
  /// The text for a token: a category, a number, a date, or nothing for missing and unknown values. Numbers
  /// and dates give the same token again. ValueError naming row and column for a token that the column does
  /// not have, and for bin means of a fit without statistics.
  std::string inverse(std::int64_t token, std::size_t column, std::int64_t row, BinValue value) const;

  /// Like QuantileTokenizer's, with the same file format.
  void save(const std::filesystem::path& path) const;
  static TableTokenizer load(const std::filesystem::path& path);

  /// 16 hexadecimal digits that change with anything in the fit except the bin means, whose last bits depend
  /// on how the table was cut into chunks.
  std::string fingerprint() const;

  /// Signs that the fit may be of little use, one sentence each, with an option that may help. A fit that was
  /// loaded does not know ColumnFit::merged.
  std::vector<std::string> notes() const;

  /// One line per column, as a table; and a page with a histogram and the edges of each.
  std::string report() const;
  std::string report_page(std::string_view title) const;

 private:
  SafeTensors file() const;
  void check() const;

  std::vector<TableColumn> columns_;
  QuantileTokenizer numeric_;
  std::vector<CategoryFit> categories_;
  std::vector<std::string> missing_;
  std::vector<std::map<std::string, std::int64_t, std::less<>>> tokens_;  // by name, of each category column
};

}  // namespace ferrite::quantile_tokenizer
