// Files that a subcommand writes.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"

namespace ferrite::cli {

/// A file that is opened before the work: a path that cannot be written should not cost it. An empty path is
/// none.
class ResultFile {
 public:
  explicit ResultFile(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }
  template <class F>
  void write(F&& make_text) {
    if (!file_) return;
    file_->write(make_text());
    file_->commit();
  }

 private:
  std::optional<AtomicFile> file_;
};

/// What an option names; an empty path is none.
struct FileOption {
  std::string_view option;
  const std::string& path;
  bool is_written;
};

inline bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  const auto whole = std::filesystem::weakly_canonical(a, error);
  return !error && whole == std::filesystem::weakly_canonical(b, error) && !error;
}

/// ValueError if a file is written that another option names too.
inline void check_files(std::string_view command, std::initializer_list<FileOption> files) {
  for (const FileOption* a = files.begin(); a != files.end(); ++a)
    for (const FileOption* b = files.begin(); b != a; ++b)
      if ((a->is_written || b->is_written) && !a->path.empty() && !b->path.empty() &&
          is_same_file(a->path, b->path))
        throw ValueError(fmt::format("[{}] {} and {} name the same file: give each its own", command,
                                     b->option, a->option));
}

}  // namespace ferrite::cli
