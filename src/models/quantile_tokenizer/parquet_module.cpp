// Finds the reader of Parquet files, a plugin that is loaded when the first such file is opened. A static
// library has the reader inside.
#include <fmt/format.h>

#include "core/plugin.hpp"
#include "ferrite/core/error.hpp"
#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

#ifndef FERRITE_PARQUET_INSIDE

namespace {

const Plugin& plugin() {
  static const Plugin arrow("ferrite_parquet", "ferrite_open_parquet", "Apache Arrow, which reads Parquet");
  return arrow;
}

}  // namespace

std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path,
                                                const TableConfig& config) {
  const auto open = reinterpret_cast<decltype(&ferrite_open_parquet)>(plugin().function());
  if (open == nullptr) throw IoError(fmt::format("[open_table] {}: {}", path.string(), plugin().reason()));
  return std::unique_ptr<TableSource>(open(path, config));
}

std::string parquet_unavailable_reason() { return plugin().reason(); }

#else

std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path,
                                                const TableConfig& config) {
  return std::unique_ptr<TableSource>(ferrite_open_parquet(path, config));
}

std::string parquet_unavailable_reason() { return ""; }

#endif

}  // namespace ferrite::quantile_tokenizer
