// CSV in blocks of whole rows that threads parse at the same time. Where a block ends depends on the text
// alone: at the first line end outside quotes after a fixed number of bytes.
#include <fmt/format.h>

#include <exception>
#include <limits>
#include <span>
#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/csv_value.hpp"
#include "io/format.hpp"
#include "models/tokenizer/table_sources.hpp"

namespace ferrite::tokenizer {

namespace {

using io_detail::in_quotes;

std::int64_t count_char(std::string_view text, char c) {
  std::int64_t n = 0;
  for (std::size_t at = text.find(c); at != text.npos; at = text.find(c, at + 1)) ++n;
  return n;
}

struct Block {
  std::string_view text;
  std::int64_t line = 1;       // its first
  std::int64_t line_ends = 0;  // in it
};

/// Codes for strings in order of appearance.
class Interner {
 public:
  explicit Interner(TextColumn& column) : column_(column) {
    for (std::size_t i = 0; i < column.distinct.size(); ++i) codes_.emplace(column.distinct[i], i);
  }
  std::int32_t code(std::string_view text) {
    const auto [found, added] = codes_.try_emplace(std::string(text), column_.distinct.size());
    if (added) column_.distinct.emplace_back(text);
    return static_cast<std::int32_t>(found->second);
  }

 private:
  TextColumn& column_;
  std::unordered_map<std::string, std::size_t> codes_;
};

class CsvSource final : public TableSource {
 public:
  CsvSource(const std::filesystem::path& path, const TableConfig& config)
      : config_(config),
        path_(path.string()),
        missing_values_(config.missing),
        file_(MappedFile::open(path)) {
    fingerprint_ = fingerprint_of(path, config);
    missing_ = missing_values_.markers();
    inspect(path);
    rewind();
  }

  void rewind() override {
    position_ = data_begin_;
    line_ = data_line_;
    row_ = 0;
  }
  double progress() const override {
    return text().empty() ? 1 : static_cast<double>(position_) / static_cast<double>(text().size());
  }

  std::shared_ptr<const TableChunk> next() override {
    for (;;) {  // a block of empty lines has no rows
      const std::vector<Block> blocks = next_blocks();
      if (blocks.empty()) return nullptr;
      std::vector<TableChunk> parts = parse_all(blocks);
      auto chunk = std::make_shared<TableChunk>(std::move(parts[0]));
      append(*chunk, std::span(parts).subspan(1));
      chunk->first_row = row_;
      row_ += chunk->rows;
      if (chunk->rows > 0) return chunk;
    }
  }

 private:
  std::string_view text() const { return file_->text(); }

  [[noreturn]] void reject(std::int64_t line, std::int64_t column, const std::string& found,
                           const std::string& needed) const {
    throw ParseError(fmt::format("[open_table] {}:{}:{}, {}: {}", path_, line, column, found, needed));
  }

  /// Names, kinds and where the data begin, from the first rows.
  void inspect(const std::filesystem::path& path) {
    CsvScanner scanner(path_, config_.delimiter);
    scanner.feed(text());
    scanner.finish();
    CsvRow row;
    if (!scanner.next_row(row)) reject(1, 1, "no rows", "at least one row of data is needed");
    width_ = row.size();
    const bool has_header = config_.header == CsvHeader::present ||
                            (config_.header == CsvHeader::automatic && looks_like_header(row));
    std::vector<std::string> all;
    for (std::size_t i = 0; i < row.size(); ++i)
      all.push_back(has_header ? row[i].text() : fmt::format("c{}", i));
    NameSet seen_names;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (!seen_names.insert(all[i]).second)
        reject(row[i].line, row[i].column, "column " + in_quotes(all[i]), "the name appears twice");
    if (has_header && !scanner.next_row(row))
      reject(1, 1, "only a header", "at least one row of data is needed");
    check_options_name_columns(all, config_, path);
    data_line_ = row.front().line;
    data_begin_ = static_cast<std::size_t>(row.front().raw.data() - text().data()) - row.front().quoted;

    std::vector<FieldKind> kinds(width_, FieldKind::number);
    std::int64_t seen = 0;
    do {
      for (std::size_t i = 0; i < width_; ++i)
        if (kinds[i] == FieldKind::number && !io_detail::parse_number(row[i].raw) &&
            !missing_values_.is_missing(row[i].raw))
          kinds[i] = FieldKind::text;
    } while (++seen < config_.inspected_rows && scanner.next_row(row));
    const NameSet dropped = set_of(config_.drop), as_text = set_of(config_.text),
                  as_number = set_of(config_.number);
    for (std::size_t i = 0; i < width_; ++i) {
      if (dropped.contains(all[i])) continue;
      fields_.push_back(i);
      names_.push_back(all[i]);
      kinds_.push_back(as_text.contains(all[i])     ? FieldKind::text
                       : as_number.contains(all[i]) ? FieldKind::number
                                                    : kinds[i]);
    }
    if (fields_.empty()) throw ValueError(fmt::format("[open_table] {}: no column is left", path_));
  }

  bool looks_like_header(const CsvRow& row) const {
    return std::any_of(row.begin(), row.end(), [&](const CsvField& f) {
      return !io_detail::parse_number(f.raw) && !missing_values_.is_missing(f.raw);
    });
  }

  std::vector<Block> next_blocks() {
    constexpr std::int64_t blocks_per_chunk = 16;
    const auto size =
        static_cast<std::size_t>(std::max<std::int64_t>(config_.chunk_bytes / blocks_per_chunk, 1));
    std::vector<Block> blocks;
    while (position_ < text().size() && blocks.size() < blocks_per_chunk) {
      const std::string_view rest = text().substr(position_);
      std::size_t end = std::min(size, rest.size());
      bool quoted = count_char(rest.substr(0, end), '"') % 2 == 1;
      while (end < rest.size() && (quoted || rest[end - 1] != '\n')) quoted ^= rest[end++] == '"';
      blocks.push_back({rest.substr(0, end), line_, count_char(rest.substr(0, end), '\n')});
      line_ += blocks.back().line_ends;
      position_ += end;
    }
    return blocks;
  }

  std::vector<TableChunk> parse_all(const std::vector<Block>& blocks) const {
    std::vector<TableChunk> parts(blocks.size());
    std::vector<std::exception_ptr> errors(blocks.size());
    parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t chosen) {
      const auto i = static_cast<std::size_t>(chosen);
      try {
        parse(blocks[i], parts[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    for (const std::exception_ptr& error : errors)  // the first in the file, whichever thread was first
      if (error) std::rethrow_exception(error);
    return parts;
  }

  void parse(const Block& block, TableChunk& part) const {
    part.numbers.resize(fields_.size());
    part.texts.resize(fields_.size());
    std::vector<Interner> interners;
    for (TextColumn& column : part.texts) interners.emplace_back(column);
    // A row takes a byte per field; fields of many lines make no rows.
    const auto most_rows =
        std::min(static_cast<std::size_t>(block.line_ends), block.text.size() / width_) + 1;
    for (std::size_t c = 0; c < fields_.size(); ++c)
      if (kinds_[c] == FieldKind::number) part.numbers[c].reserve(most_rows);
    CsvScanner scanner(path_, config_.delimiter);
    scanner.start_at(block.line, width_);
    scanner.feed(block.text);
    scanner.finish();
    for (CsvRow row; scanner.next_row(row); ++part.rows)
      for (std::size_t c = 0; c < fields_.size(); ++c) {
        const CsvField& field = row[fields_[c]];
        if (kinds_[c] == FieldKind::number)
          part.numbers[c].push_back(number_of(field, names_[c]));
        else
          part.texts[c].codes.push_back(missing_values_.is_missing(field.raw) ? -1
                                        : field.escaped ? interners[c].code(field.text())
                                                        : interners[c].code(field.raw));
      }
  }

  double number_of(const CsvField& field, const std::string& name) const {
    if (const auto value = io_detail::parse_number(field.raw))
      return MissingValues::without(*value, missing_values_.numbers());
    if (missing_values_.is_missing(field.raw)) return std::numeric_limits<double>::quiet_NaN();
    reject(field.line, field.column,
           fmt::format("column {}, field {}", in_quotes(name), in_quotes(field.raw)),
           "the column is one of numbers, by its first rows or by the fit; read it as text if it is not");
  }

  /// Columns by threads of their own.
  static void append(TableChunk& chunk, std::span<const TableChunk> parts) {
    for (const TableChunk& part : parts) chunk.rows += part.rows;
    parallel_for(static_cast<std::int64_t>(chunk.numbers.size()), [&](std::int64_t chosen) {
      const auto c = static_cast<std::size_t>(chosen);
      std::vector<double>& numbers = chunk.numbers[c];
      if (!numbers.empty()) numbers.reserve(static_cast<std::size_t>(chunk.rows));
      for (const TableChunk& part : parts)
        numbers.insert(numbers.end(), part.numbers[c].begin(), part.numbers[c].end());
      Interner interner(chunk.texts[c]);
      for (const TableChunk& part : parts) append(interner, chunk.texts[c], part.texts[c]);
    });
  }

  static void append(Interner& interner, TextColumn& text, const TextColumn& part) {
    std::vector<std::int32_t> codes;  // of the part's texts in the whole
    for (const std::string& s : part.distinct) codes.push_back(interner.code(s));
    for (const std::int32_t code : part.codes)
      text.codes.push_back(code < 0 ? -1 : codes[static_cast<std::size_t>(code)]);
  }

  TableConfig config_;
  std::string path_;
  MissingValues missing_values_;
  std::shared_ptr<const MappedFile> file_;
  std::vector<std::size_t> fields_;  // for each column, its field in a row
  std::size_t width_ = 0, data_begin_ = 0, position_ = 0;
  std::int64_t data_line_ = 1, line_ = 1, row_ = 0;
};

}  // namespace

std::unique_ptr<TableSource> open_csv_table(const std::filesystem::path& path, const TableConfig& config) {
  TableConfig adjusted = config;
  if (path.extension() == ".tsv" && config.delimiter == ',') adjusted.delimiter = '\t';
  return std::make_unique<CsvSource>(path, adjusted);
}

}  // namespace ferrite::tokenizer
