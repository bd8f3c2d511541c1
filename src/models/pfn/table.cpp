#include "ferrite/models/pfn/table.hpp"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn {

namespace {

using quantile_tokenizer::printable;
using quantile_tokenizer::TableChunk;

/// Collects texts from parts that have codes of their own.
class TextJoiner {
 public:
  explicit TextJoiner(TextColumn& column) : column_(column) {}

  void add(const TextColumn& part) {
    std::vector<std::int32_t> codes;
    codes.reserve(part.distinct.size());
    for (const std::string& text : part.distinct) codes.push_back(code_of(text));
    for (const std::int32_t code : part.codes)
      column_.codes.push_back(code < 0 ? -1 : codes[static_cast<std::size_t>(code)]);
  }
  std::int32_t code_of(const std::string& text) {
    const auto [found, added] = places_.try_emplace(text, static_cast<std::int32_t>(column_.distinct.size()));
    if (added) column_.distinct.push_back(text);
    return found->second;
  }

 private:
  TextColumn& column_;
  std::unordered_map<std::string, std::int32_t> places_;
};

/// Texts that no row has are left out.
TextColumn taken(const TextColumn& column, std::span<const std::int64_t> rows) {
  TextColumn out;
  out.codes.reserve(rows.size());
  std::vector<std::int32_t> codes(column.distinct.size(), -1);
  for (const std::int64_t row : rows) {
    const std::int32_t old = column.codes[static_cast<std::size_t>(row)];
    if (old >= 0 && codes[static_cast<std::size_t>(old)] < 0) {
      codes[static_cast<std::size_t>(old)] = static_cast<std::int32_t>(out.distinct.size());
      out.distinct.push_back(column.distinct[static_cast<std::size_t>(old)]);
    }
    out.codes.push_back(old < 0 ? -1 : codes[static_cast<std::size_t>(old)]);
  }
  return out;
}

std::int64_t rows_of(const RawColumn& column) {
  return static_cast<std::int64_t>(column.is_text() ? column.text.codes.size() : column.numbers.size());
}

}  // namespace

Table& Table::add(RawColumn column) {
  if (find(column.name))
    throw ValueError(fmt::format("[table] column '{}': the name appears twice; rename one of them",
                                 printable(column.name)));
  if (!columns_.empty() && rows_of(column) != rows_)
    throw ValueError(fmt::format("[table] column '{}', {} rows: the table has {}", printable(column.name),
                                 rows_of(column), rows_));
  for (const std::int32_t code : column.text.codes)
    if (code < -1 || code >= static_cast<std::int32_t>(column.text.distinct.size()))
      throw ValueError(fmt::format("[table] column '{}', code {}: must lie between -1 and {}",
                                   printable(column.name), code,
                                   static_cast<std::int64_t>(column.text.distinct.size()) - 1));
  rows_ = rows_of(column);
  places_.emplace(column.name, columns_.size());
  columns_.push_back(std::move(column));
  return *this;
}

Table& Table::add_numbers(std::string name, std::vector<double> values) {
  return add({std::move(name), FieldKind::number, std::move(values), {}});
}

Table& Table::add_dates(std::string name, std::vector<double> seconds) {
  return add({std::move(name), FieldKind::date_time, std::move(seconds), {}});
}

Table& Table::add_texts(std::string name, std::span<const std::string> values) {
  RawColumn column{std::move(name), FieldKind::text, {}, {}};
  TextJoiner joiner(column.text);
  for (const std::string& text : values)
    column.text.codes.push_back(text.empty() ? -1 : joiner.code_of(text));
  return add(std::move(column));
}

const RawColumn* Table::find(std::string_view name) const {
  const auto found = places_.find(std::string(name));
  return found == places_.end() ? nullptr : &columns_[found->second];
}

Table Table::take(std::span<const std::int64_t> rows) const {
  for (const std::int64_t row : rows)
    if (row < 0 || row >= rows_)
      throw ValueError(fmt::format("[table] row {}: the table has rows 0 to {}", row, rows_ - 1));
  Table out;
  out.rows_ = static_cast<std::int64_t>(rows.size());
  out.places_ = places_;
  out.missing_ = missing_;
  out.columns_.resize(columns_.size());
  parallel_for(static_cast<std::int64_t>(columns_.size()), [&](std::int64_t i) {
    const RawColumn& from = columns_[static_cast<std::size_t>(i)];
    RawColumn& to = out.columns_[static_cast<std::size_t>(i)];
    to.name = from.name;
    to.kind = from.kind;
    if (from.is_text()) {
      to.text = taken(from.text, rows);
    } else {
      to.numbers.reserve(rows.size());
      for (const std::int64_t row : rows) to.numbers.push_back(from.numbers[static_cast<std::size_t>(row)]);
    }
  });
  return out;
}

Table read_table(TableSource& source) {
  source.rewind();
  std::vector<std::shared_ptr<const TableChunk>> chunks;
  while (auto chunk = source.next()) chunks.push_back(std::move(chunk));
  std::vector<RawColumn> columns(source.names().size());
  parallel_for(static_cast<std::int64_t>(columns.size()), [&](std::int64_t i) {
    const auto c = static_cast<std::size_t>(i);
    RawColumn& column = columns[c];
    column.name = source.names()[c];
    column.kind = source.kinds()[c];
    TextJoiner joiner(column.text);
    for (const auto& chunk : chunks) {
      if (column.is_text())
        joiner.add(chunk->texts[c]);
      else
        column.numbers.insert(column.numbers.end(), chunk->numbers[c].begin(), chunk->numbers[c].end());
    }
  });
  Table table;
  for (RawColumn& column : columns) table.add(std::move(column));
  table.set_missing(source.missing());
  return table;
}

Table read_table(const std::filesystem::path& path, TableConfig config) {
  if (config.inspected_rows == TableConfig{}.inspected_rows)
    config.inspected_rows = std::numeric_limits<std::int64_t>::max();
  return read_table(*quantile_tokenizer::open_table(path, config));
}

}  // namespace ferrite::pfn
