// The progress bar.
#include "ferrite/train/observer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::train {
namespace {

constexpr int bar_width = 24;
constexpr std::chrono::milliseconds redraw_interval{50};

/// "1:02:03", "2:03", "0:05"
std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 3.6e6)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string bar_text(const Progress& p) {
  const double share = p.steps > 0 ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 0;
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * bar_width);
  return fmt::format("[{:<{}}] {}/{}  loss {:.4f}  lr {:.2e}  {:.0f} samples/s  ETA {}",
                     std::string(static_cast<std::size_t>(filled), '='), bar_width, p.step, p.steps, p.loss,
                     p.lr, p.samples_per_second, clock_text(p.seconds_left));
}

}  // namespace

double Evaluation::operator[](std::string_view name) const {
  std::string names;
  for (const auto& [key, value] : values) {
    if (key == name) return value;
    names += (names.empty() ? "" : ", ") + key;
  }
  throw ValueError(fmt::format("[evaluation] '{}' was not measured: there are {}", name, names));
}

ProgressBar::ProgressBar(std::FILE* stream, Show show)
    : stream_(stream), visible_(show == Show::always || ::isatty(::fileno(stream)) == 1) {}

void ProgressBar::on_progress(const Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (progress.step < progress.steps && now - drawn_ < redraw_interval) return;
  drawn_ = now;
  line_ = bar_text(progress);
  write(fmt::format("\r\x1b[K{}", line_));
}

void ProgressBar::on_evaluation(std::int64_t step, const Evaluation& evaluation) {
  std::string text = fmt::format("\r\x1b[Kstep {}", step);
  for (const auto& [name, value] : evaluation.values) text += fmt::format("  {} {:.4f}", name, value);
  write(text + "\n" + line_);
}

void ProgressBar::on_notice(const std::string& text) {
  write(fmt::format("\r\x1b[Knotice: {}\n{}", text, line_));
}

void ProgressBar::on_finish() {
  if (!line_.empty()) write("\n");
  line_.clear();
}

void ProgressBar::write(std::string_view text) {
  if (!visible_) return;
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

}  // namespace ferrite::train
