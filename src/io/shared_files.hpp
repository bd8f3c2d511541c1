// Files that come with ferrite: PREFIX/share/ferrite where it is installed, share/ferrite in a build.
#pragma once

#include <filesystem>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// The place of such a file: in the folder that the environment variable FERRITE_SHARE names, else next to
/// the program's folder or, if it is not there, next to the library's. Nobody says that the file is there.
FERRITE_API std::filesystem::path shared_file(std::string_view name);

}  // namespace ferrite
