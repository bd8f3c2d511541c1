// Data sets from CSV files, with errors that name the file and the line.
#include <fmt/format.h>

#include <cmath>

#include "ferrite/core/error.hpp"
#include "ferrite/data/dataset.hpp"
#include "ferrite/io/mapped_file.hpp"

namespace ferrite::data {
namespace {

/// Whether an element of this integer dtype reads back as the same number.
bool holds(DType dtype, double value) {
  if (!std::isfinite(value)) return false;
  double back = 0;
  std::byte element[8];
  detail::convert_elements(DType::f64, &value, dtype, element, 1);
  detail::convert_elements(dtype, element, DType::f64, &back, 1);
  return back == value;
}

/// "file:line:column" of a value. The table has no lines, so the file is scanned again: this is for errors.
std::string place_of(const std::filesystem::path& path, const CsvDatasetConfig& config, std::int64_t rows,
                     std::int64_t row, const std::string& column) {
  const auto file = MappedFile::open(path);
  const auto scan = [&](auto&& see) {
    CsvScanner scanner(path.string(), config.csv.delimiter);
    scanner.feed(file->text());
    scanner.finish();
    CsvRow fields;
    for (std::int64_t i = 0; scanner.next_row(fields); ++i) see(i, fields);
  };
  std::int64_t all = 0;
  scan([&](std::int64_t, const CsvRow&) { ++all; });
  const std::int64_t header = all - rows;  // 1 or 0
  std::size_t field = 0;
  std::string place;
  scan([&](std::int64_t i, const CsvRow& fields) {
    if (i == 0) {
      while (field + 1 < fields.size() &&
             (header ? fields[field].text() : fmt::format("c{}", field)) != column)
        ++field;
    }
    if (i == header + row)
      place = fmt::format("{}:{}:{}", path.string(), fields[field].line, fields[field].column);
  });
  return place;
}

void check_column(const std::filesystem::path& path, const CsvDatasetConfig& config, const CsvTable& table,
                  const std::string& column, DType dtype, std::string_view remedy) {
  if (is_floating(dtype)) return;
  const std::vector<double>& values = table.column(column);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (holds(dtype, values[i])) continue;
    throw ParseError(fmt::format(
        "[from_csv] {}, column '{}', value {}: {} cannot hold it; {}(DType::f32) reads real numbers",
        place_of(path, config, table.rows(), static_cast<std::int64_t>(i), column), column, values[i],
        to_string(dtype), remedy));
  }
}

}  // namespace

Dataset Dataset::from_csv(const std::filesystem::path& path, const CsvDatasetConfig& config) {
  const CsvTable table = read_csv(path, config.csv);
  std::vector<std::string> features;
  for (const std::string& column : table.columns)
    if (column != config.target) features.push_back(column);
  if (features.size() == table.columns.size()) {
    throw ValueError(fmt::format("[from_csv] {}: no column '{}' among {}: name the target by with_target",
                                 path.string(), config.target, fmt::join(table.columns, ", ")));
  }
  check_column(path, config, table, config.target, config.target_dtype, "with_target_dtype");
  for (const std::string& column : features)
    check_column(path, config, table, column, config.feature_dtype, "with_feature_dtype");
  return {table.to_tensor(features, config.feature_dtype),
          table.column_tensor(config.target, config.target_dtype)};
}

}  // namespace ferrite::data
