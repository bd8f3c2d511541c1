#include "ferrite/models/quantile_tokenizer/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "ferrite/io/npy.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

using Json = nlohmann::ordered_json;

std::string shard_name(std::int64_t number) { return fmt::format("tokens-{:05}.npy", number); }

bool is_shard(std::string_view name) {
  if (!name.starts_with("tokens-") || !name.ends_with(".npy")) return false;
  name.remove_prefix(7);
  name.remove_suffix(4);
  return name.size() >= 5 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The result of f; file system errors become those of the library.
template <class F>
auto with_io_errors(std::string_view what, F&& f) {
  try {
    return f();
  } catch (const std::filesystem::filesystem_error& e) {
    throw IoError(fmt::format("[{}] {}: {}", what, e.path1().string(), e.code().message()));
  }
}

Json column_names(const TableTokenizer& tokenizer) {
  Json names = Json::array();
  for (const TableColumn& c : tokenizer.columns()) names.push_back(c.name);
  return names;
}

/// Collects rows and writes a shard whenever it is full. Whole shards of an earlier run are skipped.
class ShardWriter {
 public:
  ShardWriter(const std::filesystem::path& folder, const TableTokenizer& tokenizer, std::int64_t rows)
      : folder_(folder),
        width_(tokenizer.width()),
        columns_(static_cast<std::int64_t>(tokenizer.columns().size())),
        rows_(rows) {
    while (is_whole(kept_)) ++kept_;
  }

  std::int64_t kept() const { return kept_; }
  /// True if some of these rows go into a shard that is not there.
  bool needs(std::int64_t first, std::int64_t count) const { return first + count > kept_ * rows_; }

  void add(std::int64_t first, const HostTensor& tokens) {
    const std::int64_t count = tokens.shape()[0];
    const auto row_bytes =
        static_cast<std::int64_t>(tokens.bytes().size()) / std::max<std::int64_t>(count, 1);
    for (std::int64_t row = std::max(first, kept_ * rows_); row < first + count;) {
      const std::int64_t taken = std::min(first + count - row, rows_ - row % rows_);
      const auto part = tokens.bytes().subspan(static_cast<std::size_t>((row - first) * row_bytes),
                                               static_cast<std::size_t>(taken * row_bytes));
      buffer_.insert(buffer_.end(), part.begin(), part.end());
      row += taken;
      if (row % rows_ == 0) write(row / rows_ - 1, rows_);
    }
  }
  void finish(std::int64_t rows) {
    if (!buffer_.empty()) write(rows / rows_, rows % rows_);
  }

 private:
  /// A power loss, or a copy that was cut, can leave a file empty or truncated. Only the last has fewer rows.
  bool is_whole(std::int64_t number) const {
    const auto exists = [&](std::int64_t n) { return std::filesystem::exists(folder_ / shard_name(n)); };
    if (!exists(number)) return false;
    try {
      const HostTensor shard = read_npy(folder_ / shard_name(number));  // it is mapped, not read
      const Shape& shape = shard.shape();
      return shard.dtype() == tensor_dtype(width_) && shape.rank() == 2 && shape[1] == columns_ &&
             (shape[0] == rows_ || (shape[0] < rows_ && !exists(number + 1)));
    } catch (const ParseError&) {
      return false;
    }
  }
  void write(std::int64_t number, std::int64_t rows) {
    const HostTensor shard = HostTensor::copy_of(tensor_dtype(width_), {rows, columns_}, buffer_);
    buffer_.clear();
    write_npy(folder_ / shard_name(number), shard);
  }

  std::filesystem::path folder_;
  TokenWidth width_;
  std::int64_t columns_, rows_, kept_ = 0;
  std::vector<std::byte> buffer_;
};

/// A plan in the folder must match the current one, or all that is there is removed: shards of two runs do
/// not mix.
void settle_plan(const std::filesystem::path& folder, const std::string& plan, bool overwrite) {
  std::filesystem::create_directories(folder);
  const auto path = folder / "plan.json";
  const bool same = std::filesystem::exists(path) && MappedFile::open(path)->text() == plan;
  if (same && !overwrite) return;
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && (is_shard(name) || name == "index.json" || name == "plan.json"))
      old.push_back(entry.path());
  }
  if (!old.empty() && !overwrite)
    throw ValueError(
        fmt::format("[write_shards] {}: holds shards of another fit, table or size; choose another "
                    "folder or ask to overwrite them",
                    folder.string()));
  for (const auto& file : old) std::filesystem::remove(file);
  write_text(path, plan);
}

ShardResult write_all(const std::filesystem::path& folder, TableSource& source,
                      const TableTokenizer& tokenizer, TableEngine& engine, const ShardConfig& config,
                      const TableProgress& progress) {
  if (config.rows < 1)
    throw ValueError(fmt::format("[write_shards] {} rows in a shard: at least one is needed", config.rows));
  tokenizer.check_source(source);
  const Json plan{{"fit", tokenizer.fingerprint()},
                  {"table", source.fingerprint()},
                  {"rows_per_shard", config.rows},
                  {"width", to_string(tokenizer.width())}};
  settle_plan(folder, plan.dump(2) + "\n", config.overwrite);

  ShardWriter writer(folder, tokenizer, config.rows);
  ShardResult result;
  source.rewind();
  while (const auto chunk = source.next()) {
    if (writer.needs(chunk->first_row, chunk->rows))
      writer.add(chunk->first_row, tokenizer.transform(*chunk, engine));
    result.rows = chunk->first_row + chunk->rows;
    if (progress) progress("writing", source.progress());
  }
  writer.finish(result.rows);
  result.kept = writer.kept();
  result.shards = result.rows == 0 ? 0 : (result.rows - 1) / config.rows + 1;

  const Json names = column_names(tokenizer);
  Json files = Json::array();
  for (std::int64_t i = 0; i < result.shards; ++i) files.push_back(shard_name(i));
  const Json index{{"rows", result.rows},
                   {"columns", names},
                   {"width", to_string(tokenizer.width())},
                   {"missing_token", tokenizer.missing_token()},
                   {"missing_category_token", tokenizer.missing_category_token()},
                   {"unknown_token", tokenizer.unknown_token()},
                   {"shards", files}};
  write_text(folder / "index.json", index.dump(2) + "\n");
  return result;
}

/// One of the lists of a finished folder.
Json index_list(const std::filesystem::path& folder, std::string_view key) {
  const auto path = folder / "index.json";
  if (!with_io_errors("shard_files", [&] { return std::filesystem::exists(path); }))
    throw IoError(fmt::format(
        "[shard_files] {}: there is no index.json; the run that writes it is not finished", folder.string()));
  const Json index = Json::parse(MappedFile::open(path)->text(), nullptr, false);
  if (!index.is_object() || !index.contains(key) || !index[key].is_array())
    throw ParseError(fmt::format("[shard_files] {}: needs a list of {}", path.string(), key));
  return index[key];
}

}  // namespace

ShardResult write_shards(const std::filesystem::path& folder, TableSource& source,
                         const TableTokenizer& tokenizer, TableEngine& engine, const ShardConfig& config,
                         const TableProgress& progress) {
  return with_io_errors("write_shards",
                        [&] { return write_all(folder, source, tokenizer, engine, config, progress); });
}

std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> result;
  for (const Json& file : index_list(folder, "shards")) {
    const bool plain = file.is_string() && file.get<std::string>().find('/') == std::string::npos;
    if (!plain)
      throw ParseError(
          fmt::format("[shard_files] {}: shards are names of files", (folder / "index.json").string()));
    result.push_back(folder / file.get<std::string>());
  }
  return result;
}

std::vector<std::filesystem::path> shard_files(const std::filesystem::path& folder,
                                               const TableTokenizer& tokenizer) {
  auto files = shard_files(folder);
  const auto reject = [&](const std::string& what) {
    throw ValueError(
        fmt::format("[shard_files] {}: {}; give the fit that made these tokens, or make tokens with this one",
                    folder.string(), printable(what)));
  };
  const Json names = column_names(tokenizer), found = index_list(folder, "columns");
  if (found != names)
    reject(fmt::format("its columns are {}, and those of the fit {}", found.dump(), names.dump()));
  const auto plan_path = folder / "plan.json";
  const Json plan = Json::parse(MappedFile::open(plan_path, "shard_files")->text(), nullptr, false);
  if (!plan.is_object() || !plan.contains("fit"))
    throw ParseError(fmt::format("[shard_files] {}: needs the fit's fingerprint", plan_path.string()));
  if (plan["fit"] != tokenizer.fingerprint())
    reject("by plan.json its tokens are of another fit of the same columns");
  return files;
}

}  // namespace ferrite::quantile_tokenizer
