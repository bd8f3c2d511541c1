// The progress bar.
#include "ferrite/train/observer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"

namespace ferrite::train {
namespace {

/// "1:02:03", "2:03", "0:05"
std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, 3.6e6)));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
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

std::string to_string(const Progress& p, std::int64_t tokens_per_sample) {
  const bool texts = tokens_per_sample > 0;
  return fmt::format("{}/{}  loss {:.4f}  lr {:.2e}  {:.0f} {}/s  ETA {}", p.step, p.steps, p.loss, p.lr,
                     p.samples_per_second * static_cast<double>(texts ? tokens_per_sample : 1),
                     texts ? "tokens" : "samples", clock_text(p.seconds_left));
}

void ProgressBar::on_progress(const Progress& p) {
  const double share = p.steps > 0 ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 0;
  line_("", share, to_string(p, tokens_per_sample_));
}

void ProgressBar::on_evaluation(std::int64_t step, const Evaluation& evaluation) {
  std::string text = fmt::format("step {}", step);
  for (const auto& [name, value] : evaluation.values) text += fmt::format("  {} {:.4f}", name, value);
  line_.print(text);
}

void ProgressBar::on_notice(const std::string& text) { line_.print("notice: " + text); }

}  // namespace ferrite::train
