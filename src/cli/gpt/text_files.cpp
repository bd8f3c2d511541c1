#include "cli/gpt/text_files.hpp"

#include <fmt/format.h>

#include "cli/input_files.hpp"
#include "ferrite/core/error.hpp"
#include "text/split.hpp"

namespace ferrite::cli::gpt {
namespace {

constexpr std::size_t group_bytes = std::size_t{4} << 20;
/// A process may map only so many files.
constexpr std::size_t group_files = 4096;

}  // namespace

TextFiles::TextFiles(const std::vector<std::string>& arguments) : files_(input_files(arguments)) {
  for (const std::filesystem::path& file : files_)
    bytes_ += static_cast<std::int64_t>(MappedFile::open(file)->bytes().size());
  if (bytes_ == 0) throw ValueError("[gpt] --text: all files are empty: give files that hold text");
}

void TextFiles::for_each_group(const std::function<void(std::span<const TextPiece>)>& f) const {
  std::vector<TextPiece> group;
  std::size_t bytes = 0;
  const auto finish = [&] {
    if (!group.empty()) f(group);
    group.clear();
    bytes = 0;
  };
  for (const std::filesystem::path& path : files_) {
    const auto file = MappedFile::open(path);
    const std::string_view text = file->text();
    for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
      const std::size_t room = group_bytes - bytes;
      end = text.size() - begin > room ? text::safe_cut(text, begin + room) : text.size();
      group.push_back({file, text.substr(begin, end - begin), begin == 0});
      bytes += end - begin;
      if (bytes >= group_bytes || group.size() == group_files) finish();
    }
  }
  finish();
}

void add_text_option(CLI::App& command, std::vector<std::string>& arguments) {
  command
      .add_option("--text", arguments,
                  "Text files, a document each; or patterns in quotes, such as 'books/*.txt'")
      ->required();
}

std::string size_text(double bytes) {
  return bytes < 1e6   ? fmt::format("{:.1f} kB", bytes / 1e3)
         : bytes < 1e9 ? fmt::format("{:.1f} MB", bytes / 1e6)
                       : fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string size_text(const TextFiles& texts) {
  return fmt::format("{} in {} file{}", size_text(static_cast<double>(texts.bytes())), texts.size(),
                     texts.size() == 1 ? "" : "s");
}

}  // namespace ferrite::cli::gpt
