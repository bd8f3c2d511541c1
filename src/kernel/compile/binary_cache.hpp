// Compiled code on disk, so that the next process need not compile again. It can only help: a folder that
// cannot be read or written, and a file that is truncated, changed or of another key, count as absent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite::kernel {

class FERRITE_API BinaryCache {
 public:
  /// Keeps nothing if `folder` is empty. When the files together exceed `most_bytes`, the least recently used
  /// ones are removed.
  explicit BinaryCache(std::filesystem::path folder, std::uintmax_t most_bytes = std::uintmax_t{256} << 20)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  /// In kernels/ under $FERRITE_CACHE_DIR, or else under ferrite/ in $XDG_CACHE_HOME or ~/.cache.
  static BinaryCache from_environment();

  /// The code kept under this key, which contains everything it depends on: source, options, target,
  /// compiler.
  std::optional<std::string> find(std::string_view key) const noexcept;
  /// Appears whole or not at all; several processes may write at once.
  void keep(std::string_view key, std::string_view bytes) const noexcept;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(std::string_view key) const;
  void make_room(std::uintmax_t bytes) const;

  std::filesystem::path folder_;
  std::uintmax_t most_bytes_;
};

}  // namespace ferrite::kernel
