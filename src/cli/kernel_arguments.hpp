// The arguments of `ferrite kernel run`: NAME=VALUE as values of the parameters' types.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/kernel/interpreter.hpp"

namespace ferrite::cli {

/// "64x3" is {64, 3}.
std::vector<std::int64_t> extents(std::string_view text);

/// Makes the arguments of a launch out of NAME=VALUE; knows which were used.
class KernelArguments {
 public:
  /// `dim` is the shape of arrays that are not given, `seed` that of random ones.
  KernelArguments(const kernel::Module& module, const std::vector<std::string>& given,
                  std::vector<std::int64_t> dim, std::uint64_t seed);

  kernel::Value make(const std::string& name, kernel::Type type);
  void check_all_used() const;
  /// The .npy files that arguments were read from.
  const std::vector<std::string>& files() const { return files_; }

 private:
  /// `text` is what the user wrote, for errors.
  kernel::Value zeros(const std::string& name, kernel::Type type, const std::string& text,
                      std::vector<std::int64_t> shape) const;
  kernel::Value generated(const std::string& name, kernel::Type type, const std::string& text);
  kernel::Value numbers(const std::string& name, kernel::Type type, const std::string& text) const;

  const kernel::Module& module_;
  std::vector<std::int64_t> dim_;
  std::uint64_t seed_, stream_ = 0;
  std::map<std::string, std::string> given_;
  std::vector<std::string> files_;
};

}  // namespace ferrite::cli
