#include "io/shared_files.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace ferrite {

std::filesystem::path shared_file(std::string_view name) {
  namespace fs = std::filesystem;
  if (const char* folder = std::getenv("FERRITE_SHARE")) return fs::path(folder) / name;
  const auto beside = [&](const fs::path& binary) {
    return binary.parent_path().parent_path() / "share" / "ferrite" / name;
  };
  std::error_code error;
  const fs::path of_program = beside(fs::read_symlink("/proc/self/exe", error));
  Dl_info library;
  if (fs::exists(of_program, error) || dladdr(reinterpret_cast<void*>(&shared_file), &library) == 0)
    return of_program;
  const fs::path of_library = beside(fs::absolute(library.dli_fname, error));
  return fs::exists(of_library, error) ? of_library : of_program;
}

}  // namespace ferrite
