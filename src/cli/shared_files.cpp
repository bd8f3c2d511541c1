#include "cli/shared_files.hpp"

#include <cstdlib>

namespace ferrite::cli {

std::filesystem::path shared_file(std::string_view name) {
  if (const char* folder = std::getenv("FERRITE_SHARE")) return std::filesystem::path(folder) / name;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "share" / "ferrite" / name;
}

}  // namespace ferrite::cli
