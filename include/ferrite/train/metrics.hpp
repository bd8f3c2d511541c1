// RunMetrics: how a run goes, as files in its folder that other programs can read and a browser can show.
//
//   train::RunMetrics metrics("run");
//   trainer.add_observer(metrics);
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>

#include "ferrite/core/config.hpp"
#include "ferrite/train/observer.hpp"

namespace ferrite::train {

struct MetricsConfig {
  /// Tokens of a row, if the rows are texts: speeds are then in tokens.
  std::int64_t tokens_per_sample = 0;
  /// The heading of the page.
  std::string title = "Training";

  MetricsConfig with_tokens_per_sample(std::int64_t v) const {
    return detail::with(*this, &MetricsConfig::tokens_per_sample, v);
  }
  MetricsConfig with_title(std::string v) const {
    return detail::with(*this, &MetricsConfig::title, std::move(v));
  }
};

/// A step and what was measured there, by name.
struct MetricsRow {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> values;
};

/// Writes two files:
///
/// metrics.jsonl has a line, a JSON object, for every report: "step", "loss" (the mean since the last
/// report), "learning_rate", "gradient_norm" (if the optimiser computes it), "loss_scale" (if
/// losses are scaled), "samples_per_second" or "tokens_per_second", "memory_bytes" (the most in use so far)
/// and "time" (in seconds since 1970). An evaluation has a line of its own: "step", "time", and
/// "validation_loss" and the other metrics by their names. Every line is there at once. A run that begins
/// replaces the file; one that resumes keeps the lines up to its step and goes on below them.
///
/// metrics.html is a page with plots of these. It needs no network, and is rewritten at reports, at most once
/// a second. While the run goes on, a browser loads it again by itself.
class FERRITE_API RunMetrics final : public Observer {
 public:
  /// Makes the folder. Throws IoError.
  explicit RunMetrics(std::filesystem::path folder, MetricsConfig config = {});

  void on_resume(std::int64_t step) override;
  void on_progress(const Progress& progress) override;
  void on_evaluation(std::int64_t step, const Evaluation& evaluation) override;
  void on_finish() override;

 private:
  using Clock = std::chrono::steady_clock;

  void add(MetricsRow row);
  void write_page(bool running);

  std::filesystem::path folder_;
  MetricsConfig config_;
  std::vector<MetricsRow> rows_;
  std::ofstream lines_;
  std::int64_t steps_ = 0;
  Clock::time_point page_written_{};
};

}  // namespace ferrite::train
