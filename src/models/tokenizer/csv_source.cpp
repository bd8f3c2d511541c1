// CSV in blocks of whole rows that threads parse at the same time. Where a block ends depends on the text
// alone: at the first line end outside quotes after a fixed number of bytes.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <exception>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "io/csv_value.hpp"
#include "io/format.hpp"
#include "models/tokenizer/csv_block.hpp"

namespace ferrite::tokenizer {

namespace {

using io_detail::in_quotes;

std::int64_t count_char(std::string_view text, char c) {
  std::int64_t n = 0;
  for (std::size_t at = text.find(c); at != text.npos; at = text.find(c, at + 1)) ++n;
  return n;
}

class CsvSource final : public TableSource {
 public:
  CsvSource(const std::filesystem::path& path, const TableConfig& config)
      : config_(config), file_(MappedFile::open(path)) {
    columns_.path = path.string();
    columns_.delimiter = config.delimiter;
    columns_.missing = MissingValues(config.missing);
    fingerprint_ = fingerprint_of(path, config);
    missing_ = columns_.missing.markers();
    inspect(path);
    rewind();
  }

  void rewind() override {
    position_ = data_begin_;
    line_ = data_line_;
    row_ = 0;
    parsed_.clear();
  }
  double progress() const override {
    return text().empty() ? 1 : static_cast<double>(position_) / static_cast<double>(text().size());
  }

  std::shared_ptr<const TableChunk> next() override {
    for (;;) {  // a block of empty lines has no rows
      if (parsed_.empty()) parse(next_blocks());
      if (parsed_.empty()) return nullptr;
      auto chunk = std::make_shared<TableChunk>(std::move(parsed_.front()));
      parsed_.pop_front();
      chunk->first_row = row_;
      row_ += chunk->rows;
      if (chunk->rows > 0) return chunk;
    }
  }

 private:
  std::string_view text() const { return file_->text(); }

  [[noreturn]] void reject(std::int64_t line, std::int64_t column, const std::string& found,
                           const std::string& needed) const {
    throw ParseError(
        fmt::format("[open_table] {}:{}:{}, {}: {}", columns_.path, line, column, found, needed));
  }

  /// Names, kinds and where the data begin, from the first rows.
  void inspect(const std::filesystem::path& path) {
    CsvScanner scanner(columns_.path, config_.delimiter);
    scanner.feed(text());
    scanner.finish();
    CsvRow row;
    if (!scanner.next_row(row)) reject(1, 1, "no rows", "at least one row of data is needed");
    columns_.width = row.size();
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

    std::vector<FieldKind> kinds(columns_.width, FieldKind::number);
    std::int64_t seen = 0;
    do {
      for (std::size_t i = 0; i < columns_.width; ++i)
        if (kinds[i] == FieldKind::number && !io_detail::parse_number(row[i].raw) &&
            !columns_.missing.is_missing(row[i].raw))
          kinds[i] = FieldKind::text;
    } while (++seen < config_.inspected_rows && scanner.next_row(row));
    const NameSet dropped = set_of(config_.drop), as_text = set_of(config_.text),
                  as_number = set_of(config_.number);
    for (std::size_t i = 0; i < columns_.width; ++i) {
      if (dropped.contains(all[i])) continue;
      columns_.fields.push_back(i);
      names_.push_back(all[i]);
      kinds_.push_back(as_text.contains(all[i])     ? FieldKind::text
                       : as_number.contains(all[i]) ? FieldKind::number
                                                    : kinds[i]);
    }
    if (columns_.fields.empty())
      throw ValueError(fmt::format("[open_table] {}: no column is left", columns_.path));
    columns_.names = names_;
    columns_.kinds = kinds_;
  }

  bool looks_like_header(const CsvRow& row) const {
    return std::any_of(row.begin(), row.end(), [&](const CsvField& f) {
      return !io_detail::parse_number(f.raw) && !columns_.missing.is_missing(f.raw);
    });
  }

  /// The next of the file, up to config_.chunk_bytes.
  std::vector<CsvBlock> next_blocks() {
    constexpr std::int64_t most_blocks = 16;
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(config_.chunk_bytes / most_blocks, 1));
    std::vector<CsvBlock> blocks;
    while (position_ < text().size() && blocks.size() < most_blocks) {
      const std::string_view rest = text().substr(position_);
      std::size_t end = std::min(size, rest.size());
      bool quoted = count_char(rest.substr(0, end), '"') % 2 == 1;
      while (end < rest.size() && (quoted || rest[end - 1] != '\n')) quoted ^= rest[end++] == '"';
      blocks.push_back({rest.substr(0, end)});
      position_ += end;
    }
    for_each(blocks, [](CsvBlock& block) { block.lines = count_char(block.text, '\n'); });
    for (CsvBlock& block : blocks) {
      block.line = line_;
      line_ += block.lines;
    }
    return blocks;
  }

  void parse(std::vector<CsvBlock> blocks) {
    std::deque<TableChunk> chunks(blocks.size());
    std::vector<std::exception_ptr> errors(blocks.size());
    for_each(blocks, [&](CsvBlock& block) {
      const auto i = static_cast<std::size_t>(&block - blocks.data());
      try {
        chunks[i] = parse_block(block, columns_);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    for (const std::exception_ptr& error : errors)  // the first in the file, whichever thread was first
      if (error) std::rethrow_exception(error);
    parsed_ = std::move(chunks);
  }

  template <class F>
  static void for_each(std::vector<CsvBlock>& blocks, F&& f) {
    parallel_for(static_cast<std::int64_t>(blocks.size()),
                 [&](std::int64_t i) { f(blocks[static_cast<std::size_t>(i)]); });
  }

  TableConfig config_;
  CsvColumns columns_;
  std::shared_ptr<const MappedFile> file_;
  std::size_t data_begin_ = 0, position_ = 0;
  std::int64_t data_line_ = 1, line_ = 1, row_ = 0;
  std::deque<TableChunk> parsed_;  // blocks that next() has not given out
};

}  // namespace

std::unique_ptr<TableSource> open_csv_table(const std::filesystem::path& path, const TableConfig& config) {
  TableConfig adjusted = config;
  if (path.extension() == ".tsv" && config.delimiter == ',') adjusted.delimiter = '\t';
  return std::make_unique<CsvSource>(path, adjusted);
}

}  // namespace ferrite::tokenizer
