// Files that come with the program: PREFIX/share/ferrite where it is installed, share/ferrite in a build.
#pragma once

#include <filesystem>
#include <string_view>

namespace ferrite::cli {

/// The place of such a file, whether it is there or not: next to the program's folder, or in the folder that
/// the environment variable FERRITE_SHARE names.
std::filesystem::path shared_file(std::string_view name);

}  // namespace ferrite::cli
