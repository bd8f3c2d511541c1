// Files by a pattern of their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// The files that a pattern as in a shell (*, ?, [...]) matches, ascending. A pattern without these signs, or
/// one that is the name of a file, stands for itself, whether the file is there or not. Throws ValueError if
/// no file matches.
FERRITE_API std::vector<std::filesystem::path> matching_files(const std::string& pattern);

}  // namespace ferrite
