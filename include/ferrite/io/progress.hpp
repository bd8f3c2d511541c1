// ProgressLine: one line on a terminal that says how far long work is, rewritten in place.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "ferrite/core/export.hpp"

namespace ferrite {

/// Where progress shows itself.
enum class Show : std::uint8_t { on_terminals, always };

class FERRITE_API ProgressLine {
 public:
  /// Silent unless the stream is a terminal (or Show::always says so), and without a stream.
  explicit ProgressLine(std::FILE* stream = stderr, Show show = Show::on_terminals);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Wipes the line away.
  ~ProgressLine();

  /// The work, or the stage of it, a bar for the share that is done, and `more` instead of the per cent.
  /// Drawn twenty times a second at most, and at the end.
  void operator()(std::string_view what, double share, std::string_view more = {});
  /// Text that stays, above the line.
  void print(std::string_view text);
  /// The line stays as it is.
  void keep();
  /// Since this was made.
  double seconds() const;

 private:
  void write(std::string_view text);

  std::FILE* stream_;
  std::string line_;  // as it stands on the terminal
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double drawn_ = -1;
};

}  // namespace ferrite
