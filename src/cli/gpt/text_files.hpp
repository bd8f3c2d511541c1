// Texts in files of any size, read in pieces.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cli/command.hpp"
#include "ferrite/io/mapped_file.hpp"

namespace ferrite::cli::gpt {

/// A part of a file that words do not reach out of.
struct TextPiece {
  std::shared_ptr<const MappedFile> file;
  std::string_view text;
  bool begins_file;
};

class TextFiles {
 public:
  /// Files, and patterns of them in quotes. Throws ValueError if a pattern matches nothing or all files are
  /// empty, IoError if one is not there.
  explicit TextFiles(const std::vector<std::string>& arguments);

  /// Calls f with pieces that follow each other, of some MiB together: enough work for many threads. Empty
  /// files are left out.
  void for_each_group(const std::function<void(std::span<const TextPiece>)>& f) const;

  std::int64_t bytes() const { return bytes_; }
  std::size_t size() const { return files_.size(); }
  const std::vector<std::filesystem::path>& paths() const { return files_; }

 private:
  std::vector<std::filesystem::path> files_;
  std::int64_t bytes_ = 0;
};

/// The option --text.
void add_text_option(CLI::App& command, std::vector<std::string>& arguments);

/// "12.3 MB", "1.2 GB".
std::string size_text(double bytes);
/// "12.3 MB in 4 files".
std::string size_text(const TextFiles& texts);

}  // namespace ferrite::cli::gpt
