// The kind of a file by the ending of its name.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

namespace ferrite::io_detail {

/// In lower case, with the dot: ".csv" of T.CSV. Systems that do not tell the cases apart often write
/// capitals.
inline std::string ending_of(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return ending;
}

}  // namespace ferrite::io_detail
