// MappedFile: a whole file as read-only memory, without copying it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// The bytes stay valid as long as the object. Replacing the file by rename (AtomicFile) does not disturb a
/// mapping; a program that truncates it in place does: reading past the new end raises SIGBUS.
class FERRITE_API MappedFile {
 public:
  /// Throws IoError, in the name of the reader, if the path cannot be opened or is not a regular file.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                std::string_view reader = "read");
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_;
  std::size_t size_;
};

}  // namespace ferrite
