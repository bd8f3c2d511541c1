// AtomicFile: a file that appears whole or not at all, so that a crash in the middle of a save cannot destroy
// the previous version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// Writes to a temporary name beside the target; commit() syncs it, renames it over the target and syncs the
/// folder. Without a commit, or after any failure, the temporary is removed and the target is unchanged. A
/// symbolic link is followed; an existing target keeps its permissions; a target that is not a regular file
/// (folder, device, pipe) is refused. The next AtomicFile on the same path removes temporaries of a killed
/// process. Every failure is an IoError with the path and the system's reason.
class FERRITE_API AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() { discard(); }

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Replaces bytes that were written before: a header that counts what follows it.
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Must be the last call; a write or commit after it throws IoError.
  void commit();

  /// Removes the temporaries of this process. For the handler of a signal that ends it: nothing can be
  /// committed afterwards. The first 64 files that are open at a time are known.
  static void remove_temporaries() noexcept;

 private:
  void open_temporary();
  void register_temporary() noexcept;
  void forget_temporary() noexcept;
  void check_open() const;
  void discard() noexcept;
  [[noreturn]] void fail(std::string_view action, int error);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  int place_ = -1;  // among those that remove_temporaries knows; -1: none
};

/// The whole file at once, by an AtomicFile.
FERRITE_API void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace ferrite
