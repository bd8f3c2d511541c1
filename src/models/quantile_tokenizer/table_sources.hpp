// The kinds of tables that open_table chooses from.
#pragma once

#include <unordered_set>

#include "ferrite/models/quantile_tokenizer/table.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::quantile_tokenizer {

std::unique_ptr<TableSource> open_csv_table(const std::filesystem::path& path, const TableConfig& config);
std::unique_ptr<TableSource> open_array_table(const std::filesystem::path& path, const TableConfig& config);
std::unique_ptr<TableSource> open_parquet_table(const std::filesystem::path& path, const TableConfig& config);

/// The entry of the module that reads Parquet files. The caller owns the source.
extern "C" FERRITE_API TableSource* ferrite_open_parquet(const std::filesystem::path& path,
                                                         const TableConfig& config);

// Exported for that module.

/// See TableSource::fingerprint; IoError if there is no such file.
FERRITE_API std::string fingerprint_of(const std::filesystem::path& path, const TableConfig& config);

/// Names to look up, of which there may be a quarter of a million. They must outlive the set.
using NameSet = std::unordered_set<std::string_view>;
inline NameSet set_of(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

/// Of the columns of a table with these names, the places of those that the config chooses, in its order.
/// ValueError if none is left or one is asked for twice, or naming all columns that an option names and the
/// table does not have.
FERRITE_API std::vector<std::size_t> chosen_columns(const std::vector<std::string>& names,
                                                    const TableConfig& config,
                                                    const std::filesystem::path& path);

}  // namespace ferrite::quantile_tokenizer
