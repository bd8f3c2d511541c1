// The kinds of tables that open_table chooses from.
#pragma once

#include <algorithm>

#include "ferrite/models/tokenizer/table.hpp"

namespace ferrite::tokenizer {

std::unique_ptr<TableSource> open_csv_table(const std::filesystem::path& path, const TableConfig& config);
std::unique_ptr<TableSource> open_array_table(const std::filesystem::path& path, const TableConfig& config);
std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path, const TableConfig& config);

/// "size:time of last change"; IoError if there is no such file.
std::string fingerprint_of(const std::filesystem::path& path);

inline bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}
/// ValueError if an option names a column that the table does not have.
void check_options_name_columns(const std::vector<std::string>& names, const TableConfig& config,
                                const std::filesystem::path& path);

}  // namespace ferrite::tokenizer
