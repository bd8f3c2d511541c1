// Arguments that are files or patterns of their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ferrite::cli {

/// The files of all arguments, in their order. A pattern as in a shell (*, ?, [...]) that is not a file
/// itself stands for the files that it matches, ascending; ValueError if there is none. For patterns in
/// quotes, when a shell would make more arguments of them than a program may have.
std::vector<std::filesystem::path> input_files(const std::vector<std::string>& arguments);

}  // namespace ferrite::cli
