// The error for .parquet files in a build without Apache Arrow.
#include <fmt/format.h>

#include "ferrite/core/error.hpp"
#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path, const TableConfig&) {
  throw IoError(fmt::format(
      "[open_table] {}: this ferrite was built without Apache Arrow, which reads Parquet", path.string()));
}

}  // namespace ferrite::quantile_tokenizer
