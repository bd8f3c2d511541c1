#include "ferrite/kernel/error.hpp"

#include <fmt/format.h>

namespace ferrite::kernel {

namespace {

/// Line `number` of the text, from 1, without its end.
std::string_view line_of(std::string_view text, int number) {
  for (int i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string message(const Source* source, Place place, std::string_view problem) {
  if (source == nullptr || place.line == 0) return fmt::format("[kernel] {}", problem);
  constexpr std::size_t longest = 200;  // of a source line in a message
  std::string_view line = line_of(source->text, place.line);
  std::size_t before = static_cast<std::size_t>(place.column - 1);
  if (before > line.size()) before = line.size();
  const std::size_t cut = before > longest / 2 ? before - longest / 2 : 0;
  const std::string_view shown = line.substr(cut, longest);
  std::string caret(shown.substr(0, before - cut));
  for (char& c : caret) c = c == '\t' ? '\t' : ' ';  // tabs keep the caret under its column
  return fmt::format("[kernel] {}:{}:{}: {}\n{}\n{}^", source->file, place.line, place.column, problem, shown,
                     caret);
}

}  // namespace

KernelError::KernelError(const Source* source, Place place, std::string_view problem)
    : Error(message(source, place, problem)), place_(place), problem_(problem) {}

}  // namespace ferrite::kernel
