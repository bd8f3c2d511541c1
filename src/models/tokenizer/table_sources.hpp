// The kinds of tables that open_table chooses from.
#pragma once

#include <unordered_set>

#include "ferrite/models/tokenizer/table.hpp"
#include "models/tokenizer/table_text.hpp"

namespace ferrite::tokenizer {

std::unique_ptr<TableSource> open_csv_table(const std::filesystem::path& path, const TableConfig& config);
std::unique_ptr<TableSource> open_array_table(const std::filesystem::path& path, const TableConfig& config);
std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path, const TableConfig& config);

/// See TableSource::fingerprint; IoError if there is no such file.
std::string fingerprint_of(const std::filesystem::path& path, const TableConfig& config);

/// Names to look up, of which there may be a quarter of a million. They must outlive the set.
using NameSet = std::unordered_set<std::string_view>;
inline NameSet set_of(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

/// ValueError if an option names a column that the table does not have.
void check_options_name_columns(const std::vector<std::string>& names, const TableConfig& config,
                                const std::filesystem::path& path);

}  // namespace ferrite::tokenizer
