// Classes by the names that they have in a file: 007 is not 7, and long integers stay apart.
#pragma once

#include <filesystem>

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::cli::pfn {

/// The table, which was read from the file, with the target's cells as the file has them. Texts of one value,
/// as 1 and 1.0, become one: that of `classes`, else the shortest. Values are compared digit by digit,
/// because as doubles 12345678901234567 and 12345678901234568 are equal. The table as it is if it lacks the
/// target or the file is an array. Throws what read_table throws.
ferrite::pfn::Table with_class_names(const ferrite::pfn::Table& table, const std::filesystem::path& file,
                                     ferrite::pfn::TableConfig config, const std::string& target,
                                     std::span<const std::string> classes = {});

/// A table to learn from.
struct Learned {
  ferrite::pfn::Table train;
  ferrite::pfn::TableEncoder encoder;
  std::vector<std::string> notices;  // beside those of the encoder
};

/// Reads a file to learn from. Classes that look like numbers keep the names that they have in the file, and
/// numbers decide whether they are classes. Integers that are one double, but differ in the file, can be
/// nothing else. Throws what read_table and TableEncoder::fit throw.
Learned learned(const std::filesystem::path& file, const ferrite::pfn::TableConfig& reading,
                const std::string& target, ferrite::pfn::EncoderConfig config);

}  // namespace ferrite::cli::pfn
