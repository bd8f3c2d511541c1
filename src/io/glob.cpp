#include "ferrite/io/glob.hpp"

#include <fmt/format.h>
#include <glob.h>

#include "ferrite/core/error.hpp"

namespace ferrite {

std::vector<std::filesystem::path> matching_files(const std::string& pattern) {
  std::error_code ignored;
  if (pattern.find_first_of("*?[") == std::string::npos || std::filesystem::exists(pattern, ignored))
    return {pattern};
  std::vector<std::filesystem::path> files;
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status != 0) throw ValueError(fmt::format("[input] no file matches '{}'", pattern));
  return files;
}

}  // namespace ferrite
