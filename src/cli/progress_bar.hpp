// One line on a terminal that shows the progress of long work; silent without a terminal.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace ferrite::cli {

class ProgressBar {
 public:
  explicit ProgressBar(bool quiet = false) : visible_(!quiet && ::isatty(STDERR_FILENO) == 1) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() {
    if (visible_) fmt::print(stderr, "\r\x1b[K");
  }

  /// The work, or its stage, and the share that is done. Drawn at most twenty times a second.
  void operator()(std::string_view what, double share) {
    const double now = seconds();
    if (!visible_ || (share < 1 && now < drawn_ + 0.05)) return;
    drawn_ = now;
    share = std::clamp(share, 0.0, 1.0);
    fmt::print(stderr, "\r\x1b[K{:<9} [{:<30}] {:3.0f}%", what,
               std::string(static_cast<std::size_t>(30 * share), '='), 100 * share);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  bool visible_;
  double drawn_ = -1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ferrite::cli
