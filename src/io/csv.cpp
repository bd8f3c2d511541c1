// Headers, numbers and tensors on top of CsvScanner.
#include "ferrite/io/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/csv_value.hpp"
#include "io/format.hpp"

namespace ferrite {
namespace {

using io_detail::in_quotes;
using io_detail::is_missing;
using io_detail::parse_number;

class TableReader {
 public:
  TableReader(std::string_view name, const CsvConfig& config)
      : name_(name), config_(config), scanner_(std::string(name), config.delimiter) {}

  CsvTable read(std::string_view text) {
    scanner_.feed(text);
    scanner_.finish();
    if (!scanner_.next_row(row_)) reject(1, 1, "no rows", "at least one row of data is needed");
    const bool has_header = config_.header == CsvHeader::present ||
                            (config_.header == CsvHeader::automatic && looks_like_header());
    name_columns(has_header);
    select_columns();
    if (has_header && !scanner_.next_row(row_)) {
      reject(row_.front().line, 1, "only a header", "at least one row of data is needed");
    }
    do add_row();
    while (scanner_.next_row(row_));
    return std::move(table_);
  }

 private:
  [[noreturn]] void reject(std::int64_t line, std::int64_t column, std::string_view found,
                           std::string_view needed) const {
    const std::string place = fmt::format("{}:{}:{}", name_, line, column);
    io_detail::Source{"read_csv", place, nullptr}.reject(found, needed);
  }

  bool looks_like_header() const {
    return std::any_of(row_.begin(), row_.end(),
                       [](const CsvField& f) { return !parse_number(f.raw) && !is_missing(f.raw); });
  }

  void name_columns(bool has_header) {
    std::unordered_set<std::string_view> seen;
    table_.columns.reserve(row_.size());  // the views stay valid
    for (std::size_t i = 0; i < row_.size(); ++i) {
      table_.columns.push_back(has_header ? row_[i].text() : fmt::format("c{}", i));
      if (has_header && !seen.insert(table_.columns.back()).second) {
        reject(row_[i].line, row_[i].column, "column " + in_quotes(table_.columns.back()),
               "the name appears twice");
      }
    }
  }

  void select_columns() {
    if (config_.columns.empty()) {
      fields_.resize(table_.columns.size());
      std::iota(fields_.begin(), fields_.end(), std::size_t{0});
    } else {
      const std::vector<std::string> all = std::exchange(table_.columns, config_.columns);
      for (const std::string& name : table_.columns) {
        const auto found = std::find(all.begin(), all.end(), name);
        if (found == all.end()) {
          reject(1, 1, fmt::format("columns {}", fmt::join(all, ", ")), in_quotes(name) + " is asked for");
        }
        fields_.push_back(static_cast<std::size_t>(found - all.begin()));
      }
    }
    table_.values.resize(fields_.size());
  }

  void add_row() {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const CsvField& field = row_[fields_[i]];
      std::optional<double> value = parse_number(field.raw);
      if (!value && config_.missing == CsvMissing::as_nan && is_missing(field.raw)) {
        value = std::numeric_limits<double>::quiet_NaN();
      }
      if (!value) reject_field(field, table_.columns[i]);
      table_.values[i].push_back(*value);
    }
  }

  [[noreturn]] void reject_field(const CsvField& field, const std::string& column) const {
    reject(field.line, field.column,
           fmt::format("column {}, field {}", in_quotes(column), in_quotes(field.raw)),
           is_missing(field.raw) ? "a number is needed (CsvMissing::as_nan reads missing ones as NaN)"
                                 : "a number is needed" + delimiter_hint(field));
  }

  /// Of a row that was taken for a single field.
  std::string delimiter_hint(const CsvField& field) const {
    const char c =
        row_.size() > 1 || field.quoted ? 0 : io_detail::suspected_delimiter(field.raw, config_.delimiter);
    if (c == 0) return "";
    return fmt::format("; if {} is the delimiter, CsvConfig::with_delimiter says so",
                       io_detail::delimiter_name(c));
  }

  std::string_view name_;
  const CsvConfig& config_;
  CsvScanner scanner_;
  CsvRow row_;
  CsvTable table_;
  std::vector<std::size_t> fields_;  // for each column of the table, its field in a row
};

template <class T>
bool fits(double value) {
  if constexpr (std::is_same_v<T, bool>)
    return value == 0 || value == 1;
  else if constexpr (std::is_integral_v<T>) {
    // Both bounds are powers of two, so that they are exact as doubles.
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double high = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    return value >= low && value < high && value == std::trunc(value);
  } else {
    return true;
  }
}

/// Column j of a C-ordered matrix with `width` columns.
template <class T>
void store_column(const std::vector<double>& values, std::string_view name, T* out, std::size_t width) {
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (!fits<T>(values[row])) {
      throw ValueError(
          fmt::format("[CsvTable::to_tensor] column {}, row {}, value {}: {} cannot hold it exactly",
                      in_quotes(name), row, values[row], to_string(dtype_of<T>)));
    }
    out[row * width] = convert<T>(values[row]);
  }
}

void store_column(const std::vector<double>& values, std::string_view name, std::span<std::byte> out,
                  DType dtype, std::size_t index, std::size_t width) {
  visit_any_dtype(
      dtype, [&]<class T>() { store_column(values, name, reinterpret_cast<T*>(out.data()) + index, width); });
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {  // to_chars would show its sign
    out += "nan";
    return;
  }
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void check_writable(const CsvTable& table) {
  const bool same_length = std::all_of(table.values.begin(), table.values.end(), [&](const auto& column) {
    return column.size() == table.values[0].size();
  });
  if (table.rows() > 0 && table.columns.size() == table.values.size() && same_length &&
      table.columns.size() <= CsvScanner::max_fields)
    return;
  throw ValueError(
      fmt::format("[write_csv] {} names, {} columns, {} rows in the first: a name per column, 1 to {} "
                  "columns, at least one row, and columns of equal length are needed",
                  table.columns.size(), table.values.size(), table.rows(), CsvScanner::max_fields));
}

}  // namespace

const std::vector<double>& CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end()) {
    throw ValueError(
        fmt::format("[CsvTable::column] {}: must be one of {}", in_quotes(name), fmt::join(columns, ", ")));
  }
  return values[static_cast<std::size_t>(found - columns.begin())];
}

HostTensor CsvTable::to_tensor(std::span<const std::string> names, DType dtype) const {
  const Shape shape{rows(), static_cast<std::int64_t>(names.size())};
  std::unordered_map<std::string_view, std::size_t> places;  // column() for each would be quadratic
  for (std::size_t i = 0; i < columns.size(); ++i) places.emplace(columns[i], i);
  return HostTensor::make(dtype, shape, [&](std::span<std::byte> out) {
    for (std::size_t j = 0; j < names.size(); ++j) {
      const auto found = places.find(names[j]);
      const auto& source = found != places.end() ? values[found->second] : column(names[j]);
      store_column(source, names[j], out, dtype, j, names.size());
    }
  });
}

HostTensor CsvTable::column_tensor(std::string_view name, DType dtype) const {
  return HostTensor::make(
      dtype, {rows()}, [&](std::span<std::byte> out) { store_column(column(name), name, out, dtype, 0, 1); });
}

CsvTable read_csv(const std::filesystem::path& path, const CsvConfig& config) {
  const auto file = MappedFile::open(path);
  return read_csv(file->text(), path.string(), config);
}

CsvTable read_csv(std::string_view text, std::string_view name, const CsvConfig& config) {
  return TableReader(name, config).read(text);
}

void write_csv(const std::filesystem::path& path, const CsvTable& table, const CsvConfig& config) {
  io_detail::check_csv_delimiter("write_csv", config.delimiter);
  check_writable(table);
  constexpr std::size_t flush_size = 1 << 20;
  AtomicFile file(path);
  std::string out;
  if (config.header != CsvHeader::absent) {
    for (const std::string& name : table.columns) {
      append_csv_field(out, name, config.delimiter);
      out += config.delimiter;
    }
    out.back() = '\n';
  }
  for (std::size_t row = 0; row < table.values[0].size(); ++row) {
    for (const auto& column : table.values) {
      append_number(out, column[row]);
      out += config.delimiter;
    }
    out.back() = '\n';
    if (out.size() >= flush_size) {
      file.write(out);
      out.clear();
    }
  }
  file.write(out);
  file.commit();
}

}  // namespace ferrite
