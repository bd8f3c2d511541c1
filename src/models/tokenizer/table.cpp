// Which kind of table a file is, and tables that are kept in memory.
#include "ferrite/models/tokenizer/table.hpp"

#include <fmt/format.h>

#include "ferrite/core/error.hpp"
#include "models/tokenizer/table_sources.hpp"

namespace ferrite::tokenizer {

namespace {

/// Passes chunks on and keeps them.
class KeptSource final : public TableSource {
 public:
  KeptSource(std::unique_ptr<TableSource> source, std::int64_t limit)
      : source_(std::move(source)), room_(limit) {
    names_ = source_->names();
    kinds_ = source_->kinds();
    fingerprint_ = source_->fingerprint();
  }

  void rewind() override {
    next_ = 0;
    if (complete_) return;
    source_->rewind();
    used_ = 0;
    chunks_.clear();
  }
  double progress() const override {
    if (!complete_) return source_->progress();
    return static_cast<double>(next_) / static_cast<double>(std::max<std::size_t>(chunks_.size(), 1));
  }
  std::shared_ptr<const TableChunk> next() override {
    if (complete_) return next_ < chunks_.size() ? chunks_[next_++] : nullptr;
    auto chunk = source_->next();
    if (!chunk) {
      complete_ = used_ <= room_;
      next_ = chunks_.size();
      return nullptr;
    }
    for (const auto& column : chunk->numbers) used_ += static_cast<std::int64_t>(8 * column.size());
    for (const auto& column : chunk->texts) used_ += static_cast<std::int64_t>(4 * column.codes.size());
    if (used_ <= room_)
      chunks_.push_back(chunk);
    else
      chunks_.clear();
    return chunk;
  }

 private:
  std::unique_ptr<TableSource> source_;
  std::int64_t room_, used_ = 0;
  std::vector<std::shared_ptr<const TableChunk>> chunks_;
  std::size_t next_ = 0;
  bool complete_ = false;
};

}  // namespace

std::string fingerprint_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const auto time = error ? std::filesystem::file_time_type{} : std::filesystem::last_write_time(path, error);
  if (error) throw IoError(fmt::format("[open_table] {}: {}", path.string(), error.message()));
  return fmt::format("{}:{}", size, time.time_since_epoch().count());
}

void check_options_name_columns(const std::vector<std::string>& names, const TableConfig& config,
                                const std::filesystem::path& path) {
  for (const auto* list : {&config.drop, &config.text, &config.number})
    for (const std::string& name : *list)
      if (!contains(names, name))
        throw ValueError(fmt::format("[open_table] {}: there is no column '{}'; there are {}", path.string(),
                                     name, fmt::join(names, ", ")));
}

std::unique_ptr<TableSource> kept_in_memory(std::unique_ptr<TableSource> source, std::int64_t limit) {
  return std::make_unique<KeptSource>(std::move(source), limit);
}

std::unique_ptr<TableSource> open_table(const std::filesystem::path& path, const TableConfig& config) {
  const std::string kind = path.extension().string();
  if (kind == ".csv" || kind == ".tsv" || kind == ".txt") return open_csv_table(path, config);
  if (kind == ".npy" || kind == ".npz" || kind == ".safetensors") return open_array_table(path, config);
  if (kind == ".parquet") return open_parquet_table(path, config);
  throw ValueError(
      fmt::format("[open_table] {}: the name must end in .csv, .tsv, .txt, .npy, .npz, "
                  ".safetensors or .parquet",
                  path.string()));
}

}  // namespace ferrite::tokenizer
