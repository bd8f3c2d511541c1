// One line on a terminal that says how far long work is; silent where there is no terminal.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ferrite::cli {

class WorkBar {
 public:
  WorkBar(std::int64_t total, std::string unit)
      : total_(total), unit_(std::move(unit)), visible_(::isatty(::fileno(stderr)) == 1) {}
  WorkBar(const WorkBar&) = delete;
  WorkBar& operator=(const WorkBar&) = delete;
  ~WorkBar() {
    if (visible_) fmt::print(stderr, "\r\x1b[K");
  }

  void show(std::int64_t done) const {
    if (!visible_) return;
    constexpr int width = 30;
    const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1;
    const double rate = static_cast<double>(done) / std::max(seconds(), 1e-9);
    const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
    fmt::print(stderr, "\r\x1b[K[{:<{}}] {}/{} {}  {:.0f}/s  {:.0f} s left",
               std::string(static_cast<std::size_t>(share * width), '='), width, done, total_, unit_, rate,
               left);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::int64_t total_;
  std::string unit_;
  bool visible_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ferrite::cli
