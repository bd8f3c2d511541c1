// CSV in blocks of whole rows that threads parse at the same time. Where a block ends depends on the text
// alone: at the first line end outside quotes after a multiple of a fixed number of bytes.
#include <algorithm>
#include <deque>
#include <exception>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "models/quantile_tokenizer/csv_inspection.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

std::int64_t count_char(std::string_view text, char c) {
  std::int64_t n = 0;
  for (std::size_t at = text.find(c); at != text.npos; at = text.find(c, at + 1)) ++n;
  return n;
}

class CsvSource final : public TableSource {
 public:
  CsvSource(const std::filesystem::path& path, const TableConfig& config)
      : config_(config), file_(MappedFile::open(path)) {
    CsvInspection found = inspect_csv(text(), path, config);
    apply_guesses(found);
    columns_ = std::move(found.columns);
    data_begin_ = found.data_begin;
    data_line_ = found.data_line;
    notes_ = std::move(found.notes);
    names_ = columns_.names;
    kinds_ = columns_.kinds;
    missing_ = columns_.missing.markers();
    fingerprint_ = fingerprint_of(path, config);
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

  /// The next of the file, up to config_.chunk_bytes.
  std::vector<CsvBlock> next_blocks() {
    constexpr std::int64_t most_blocks = 16;
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(config_.chunk_bytes / most_blocks, 1));
    const std::string_view rest = text().substr(position_);
    std::vector<std::int64_t> quotes(std::min<std::size_t>((rest.size() + size - 1) / size, most_blocks));
    parallel_for(static_cast<std::int64_t>(quotes.size()), [&](std::int64_t i) {
      const auto slice = static_cast<std::size_t>(i);
      quotes[slice] = count_char(rest.substr(slice * size, size), '"');
    });
    std::vector<CsvBlock> blocks;
    std::size_t begin = 0;
    bool inside_quotes = false;
    for (std::size_t slice = 0; slice < quotes.size(); ++slice) {
      inside_quotes ^= quotes[slice] % 2 == 1;
      bool quoted = inside_quotes;
      std::size_t end = std::min((slice + 1) * size, rest.size());
      while (end < rest.size() && (quoted || rest[end - 1] != '\n')) quoted ^= rest[end++] == '"';
      if (end > begin) blocks.push_back({rest.substr(begin, end - begin)});  // else one row fills the slice
      begin = std::max(begin, end);
    }
    position_ += begin;
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
  return std::make_unique<CsvSource>(path, csv_config(path, config));
}

}  // namespace ferrite::quantile_tokenizer
