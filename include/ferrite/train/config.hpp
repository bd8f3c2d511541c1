// TrainerConfig: how long to train, and what happens on the way.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ferrite/nn/config.hpp"
#include "ferrite/optim/schedule.hpp"

namespace ferrite::train {

enum class Better : std::uint8_t { lower, higher };

struct TrainerConfig {
  /// Updates in the whole run, those before a resumption included.
  std::int64_t steps = 0;
  /// Absent: the optimiser's own learning rate.
  std::optional<optim::Schedule> schedule = std::nullopt;
  /// Batches whose gradients are averaged into one update.
  std::int64_t micro_batches = 1;
  /// Steps between reports to observers; reading the loss waits for the device.
  std::int64_t report_every = 10;
  /// Steps between evaluations on the validation set; 0: only at the end.
  std::int64_t evaluate_every = 0;
  /// Where checkpoints go, and how many steps lie between them (0: one at the end). Empty: none.
  std::filesystem::path checkpoint_folder = {};
  std::int64_t checkpoint_every = 0;
  int keep_checkpoints = 3;
  /// Which metric of the evaluations makes a checkpoint the best one.
  std::string best_metric = "loss";
  Better better = Better::lower;

  TrainerConfig with_steps(std::int64_t v) const { return detail::with(*this, &TrainerConfig::steps, v); }
  TrainerConfig with_schedule(optim::Schedule v) const {
    return detail::with(*this, &TrainerConfig::schedule, v);
  }
  TrainerConfig with_micro_batches(std::int64_t v) const {
    return detail::with(*this, &TrainerConfig::micro_batches, v);
  }
  TrainerConfig with_report_every(std::int64_t v) const {
    return detail::with(*this, &TrainerConfig::report_every, v);
  }
  TrainerConfig with_evaluate_every(std::int64_t v) const {
    return detail::with(*this, &TrainerConfig::evaluate_every, v);
  }
  TrainerConfig with_checkpoints(std::filesystem::path folder, std::int64_t every, int keep = 3) const {
    const TrainerConfig kept = detail::with(*this, &TrainerConfig::keep_checkpoints, keep);
    return detail::with(detail::with(kept, &TrainerConfig::checkpoint_every, every),
                        &TrainerConfig::checkpoint_folder, std::move(folder));
  }
  TrainerConfig with_best(std::string metric, Better direction) const {
    return detail::with(detail::with(*this, &TrainerConfig::best_metric, std::move(metric)),
                        &TrainerConfig::better, direction);
  }
  /// Throws ValueError for counts that make no sense.
  FERRITE_API void check() const;
};

}  // namespace ferrite::train
