#include "cli/input_files.hpp"

#include "ferrite/io/glob.hpp"

namespace ferrite::cli {

std::vector<std::filesystem::path> input_files(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::string& argument : arguments)
    for (std::filesystem::path& file : matching_files(argument)) files.push_back(std::move(file));
  return files;
}

}  // namespace ferrite::cli
