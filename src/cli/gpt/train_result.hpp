// What `ferrite gpt train --json` prints.
#pragma once

#include <chrono>
#include <optional>

#include "cli/gpt/train.hpp"
#include "ferrite/train/observer.hpp"
#include "ferrite/train/trainer_base.hpp"

namespace ferrite::cli::gpt {

/// Keeps what a run reported last.
class TrainResult final : public train::Observer {
 public:
  explicit TrainResult(const TrainOptions& options) : options_(options) {}
  void on_resume(std::int64_t step) override { resumed_ = step; }
  void on_progress(const train::Progress& progress) override { progress_ = progress; }
  void on_evaluation(std::int64_t, const train::Evaluation& evaluation) override { evaluation_ = evaluation; }

  /// One object, on stdout. `tokens`: those of the data.
  void print(const train::TrainerBase& trainer, train::Outcome outcome, std::int64_t tokens,
             const std::string& backend) const;

 private:
  using Clock = std::chrono::steady_clock;

  const TrainOptions& options_;
  const Clock::time_point start_ = Clock::now();
  std::optional<std::int64_t> resumed_;
  std::optional<train::Progress> progress_;
  std::optional<train::Evaluation> evaluation_;
};

}  // namespace ferrite::cli::gpt
