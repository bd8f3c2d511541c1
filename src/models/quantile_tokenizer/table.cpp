// Chooses the kind of table for a file; also tables that are kept in memory.
#include "ferrite/models/quantile_tokenizer/table.hpp"

#include <fmt/format.h>

#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "io/file_ending.hpp"
#include "models/quantile_tokenizer/csv_inspection.hpp"
#include "models/quantile_tokenizer/fingerprint.hpp"
#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

std::int64_t bytes_of(const TableChunk& chunk) {
  std::size_t bytes = 0;
  for (const auto& column : chunk.numbers) bytes += 8 * column.size();
  for (const TextColumn& column : chunk.texts) {
    bytes += 4 * column.codes.size();
    for (const std::string& text : column.distinct) bytes += sizeof text + text.size();
  }
  return static_cast<std::int64_t>(bytes);
}

/// Passes chunks on and keeps them.
class KeptSource final : public TableSource {
 public:
  KeptSource(std::unique_ptr<TableSource> source, std::int64_t limit)
      : source_(std::move(source)), room_(limit) {
    names_ = source_->names();
    kinds_ = source_->kinds();
    missing_ = source_->missing();
    notes_ = source_->notes();
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
    used_ += bytes_of(*chunk);
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

std::string fingerprint_of(const std::filesystem::path& path, const TableConfig& config) {
  std::error_code error;
  const auto whole_path = std::filesystem::absolute(path, error).lexically_normal();
  const auto size = std::filesystem::file_size(path, error);
  const auto time = error ? std::filesystem::file_time_type{} : std::filesystem::last_write_time(path, error);
  if (error) throw IoError(fmt::format("[open_table] {}: {}", path.string(), error.message()));
  Fingerprint reading;
  for (const std::string& text : {whole_path.string(), config.array, std::string(1, config.delimiter),
                                  fmt::format("{} {} {}", static_cast<int>(config.header),
                                              static_cast<int>(config.layout), config.rename_duplicates)})
    reading.add(text);
  for (const std::string& marker : normalized_markers(config.missing)) reading.add(marker);
  return fmt::format("{}:{}:{}", size, time.time_since_epoch().count(), reading.text());
}

std::vector<std::size_t> chosen_columns(const std::vector<std::string>& names, const TableConfig& config,
                                        const std::filesystem::path& path) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  NameSet seen;
  std::vector<std::string> unknown;
  for (const auto* list : {&config.columns, &config.drop, &config.text, &config.number, &config.date})
    for (const std::string& name : *list)
      if (!places.contains(name) && seen.insert(name).second) unknown.push_back(name);
  if (!unknown.empty())
    throw ValueError(fmt::format("[open_table] {}, columns {}: there is no {}", path.string(),
                                 printable(names), printable(unknown)));
  NameSet asked;
  for (const std::string& name : config.columns)
    if (!asked.insert(name).second)
      throw ValueError(
          fmt::format("[open_table] {}, column '{}': is asked for twice", path.string(), printable(name)));
  const NameSet dropped = set_of(config.drop);
  std::vector<std::size_t> chosen;
  for (const std::string& name : config.columns.empty() ? names : config.columns)
    if (!dropped.contains(name)) chosen.push_back(places.at(name));
  if (chosen.empty()) throw ValueError(fmt::format("[open_table] {}: no column is left", path.string()));
  return chosen;
}

std::unique_ptr<TableSource> kept_in_memory(std::unique_ptr<TableSource> source, std::int64_t limit) {
  return std::make_unique<KeptSource>(std::move(source), limit);
}

std::unique_ptr<TableSource> open_table(const std::filesystem::path& path, const TableConfig& config) {
  const std::string kind = io_detail::ending_of(path);
  if (is_csv(path)) return open_csv_table(path, config);
  if (kind == ".npy" || kind == ".npz" || kind == ".safetensors") return open_array_table(path, config);
  if (kind == ".parquet") return open_parquet_table(path, config);
  throw ValueError(
      fmt::format("[open_table] {}: the name must end in .csv, .tsv, .txt, .npy, .npz, "
                  ".safetensors or .parquet",
                  path.string()));
}

}  // namespace ferrite::quantile_tokenizer
