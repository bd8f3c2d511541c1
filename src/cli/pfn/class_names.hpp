// Classes by the names that they have in a file: 007 is not 7, and long integers stay apart.
#pragma once

#include <filesystem>

#include "ferrite/models/pfn/table.hpp"

namespace ferrite::cli::pfn {

/// The table, which was read from the file, with the target's cells as the file has them. Texts of one value,
/// as 1 and 1.0, become one: that of `classes`, else the shortest. Values are compared digit by digit,
/// because as doubles 12345678901234567 and 12345678901234568 are equal. The table as it is if it lacks the
/// target or the file is an array. Throws what read_table throws.
ferrite::pfn::Table with_class_names(const ferrite::pfn::Table& table, const std::filesystem::path& file,
                                     ferrite::pfn::TableConfig config, const std::string& target,
                                     std::span<const std::string> classes = {});

/// Whether numbers are written as ferrite writes them, so that their names follow from their values.
bool has_plain_numbers(const ferrite::pfn::TextColumn& column);

}  // namespace ferrite::cli::pfn
