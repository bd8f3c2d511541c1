// A folder of its own for one test, removed at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ferrite::testing {

class ScratchFolder {
 public:
  /// mkdtemp wants six letters X at the end, and puts something unique in their place.
  ScratchFolder()
      : path_((std::filesystem::temp_directory_path() / "ferrite-test-").string() + std::string(6, 'X')) {
    if (!::mkdtemp(path_.data())) throw std::runtime_error("no scratch folder");
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(std::string_view name) const { return std::filesystem::path(path_) / name; }
  std::size_t file_count() const {
    using Entries = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Entries(path_), Entries()));
  }

 private:
  std::string path_;
};

}  // namespace ferrite::testing
