// Files that a subcommand writes.
#pragma once

#include <optional>
#include <string>

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

}  // namespace ferrite::cli
