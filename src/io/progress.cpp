#include "ferrite/io/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace ferrite {

ProgressLine::ProgressLine(std::FILE* stream, Show show)
    : stream_(stream && (show == Show::always || ::isatty(::fileno(stream)) == 1) ? stream : nullptr) {}

ProgressLine::~ProgressLine() {
  if (!line_.empty()) write("\r\x1b[K");
}

void ProgressLine::operator()(std::string_view what, double share, std::string_view more) {
  const double now = seconds();
  if (!stream_ || (share < 1 && now < drawn_ + 0.05)) return;
  drawn_ = now;
  share = std::clamp(share, 0.0, 1.0);
  line_ = what.empty() ? "" : fmt::format("{:<9} ", what);
  line_ += fmt::format("[{:<24}] ", std::string(static_cast<std::size_t>(24 * share), '='));
  line_ += more.empty() ? fmt::format("{:3.0f}%", 100 * share) : more;
  write("\r\x1b[K" + line_);
}

void ProgressLine::print(std::string_view text) { write(fmt::format("\r\x1b[K{}\n{}", text, line_)); }

void ProgressLine::keep() {
  if (!line_.empty()) write("\n");
  line_.clear();
}

double ProgressLine::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void ProgressLine::write(std::string_view text) {
  if (!stream_) return;
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

}  // namespace ferrite
