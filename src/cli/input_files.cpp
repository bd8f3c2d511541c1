#include "cli/input_files.hpp"

#include <fmt/format.h>
#include <glob.h>

#include "ferrite/core/error.hpp"

namespace ferrite::cli {

std::vector<std::filesystem::path> input_files(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    if (argument.find_first_of("*?[") == std::string::npos || std::filesystem::exists(argument, ignored)) {
      files.emplace_back(argument);
      continue;
    }
    glob_t found{};
    const int status = ::glob(argument.c_str(), 0, nullptr, &found);
    for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (status != 0) throw ValueError(fmt::format("[input] no file matches '{}'", argument));
  }
  return files;
}

}  // namespace ferrite::cli
