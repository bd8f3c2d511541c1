// TrainerConfig: how long to train, and what happens during training.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "ferrite/core/config.hpp"
#include "ferrite/optim/config.hpp"
#include "ferrite/optim/schedule.hpp"

namespace ferrite::train {

/// Which values of a metric are better.
enum class Better : std::uint8_t { lower, higher };

/// What a trainer does about a loss that is NaN or inf. In any case, weights that hold NaN are never saved to
/// a checkpoint.
enum class NonFinite : std::uint8_t {
  /// Throws ValueError naming the step and the op or tensor where it began. Losses are checked every
  /// `check_every` steps, before the update, and before each report, evaluation and checkpoint.
  stop,
  /// Reads the loss and the norm of the gradients in every step, and skips batches where one of them is not
  /// finite: no update, no change of running statistics, a notice to the observers. Stops after `max_skipped`
  /// such steps in a row.
  skip
};
inline constexpr int max_skipped = 10;

/// Whether a trainer records its step once and replays it, which spares the host the launching of every
/// kernel. The first two steps run op by op, so that plans are chosen; then the step is recorded
/// (backend/record.hpp). Results are the same bit for bit. Losses are read when a report, an evaluation, a
/// checkpoint or `check_every` needs them, after the update. Batches of other shapes have recordings of their
/// own, as far as `recorded_kinds` allows; the rest run op by op. Under capture the step function runs only
/// once for each recording, so it must do all its work in ops.
enum class Capture : std::uint8_t {
  never,
  /// Op by op if the backend cannot record, and, with a notice, if the step cannot be recorded.
  if_possible,
  /// BackendError in these cases.
  required
};

/// Whether a run may resume from a checkpoint of a run with another schedule.
enum class ScheduleChange : std::uint8_t { refuse, accept };

/// How long a Trainer trains, and what happens during training.
struct TrainerConfig {
  /// Updates in the whole run, including those before it was resumed. A resumed run may have more steps than
  /// first planned. Its learning rates are those of `schedule` at the following steps: a cosine that has
  /// reached its end stays there, and a longer one in its place needs `schedule_change`.
  std::int64_t steps = 0;
  /// Absent: the optimiser's own learning rate.
  std::optional<optim::Schedule> schedule = std::nullopt;
  /// accept: a resumed run follows its own schedule from the checkpoint's step on, as if it had been there
  /// from step 0. The observers are told.
  ScheduleChange schedule_change = ScheduleChange::refuse;
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
  /// The metric that decides which checkpoint is the best one.
  std::string best_metric = "loss";
  Better better = Better::lower;
  /// A value counts as better only if it improves by more than this.
  double min_delta = 0;
  /// Training stops after this many evaluations in a row without improvement; 0: never.
  std::int64_t patience = 0;
  NonFinite non_finite = NonFinite::stop;
  /// Steps between two checks of the losses. 0: 1 on the CPU; `report_every` on a GPU, where a check waits
  /// for the device. A bad loss that is found late has already changed the weights.
  std::int64_t check_every = 0;
  /// How losses are scaled (optim::LossScaler). Absent: by the defaults if products are in f16 (Autocast),
  /// otherwise not at all. Updates whose gradients are not finite are then left out on the device, whatever
  /// `non_finite` says; a loss that is not finite is still an error, or a batch to skip.
  std::optional<optim::LossScalerConfig> loss_scaler = std::nullopt;
  /// Not with NonFinite::skip, which reads every loss before the update.
  Capture capture = Capture::never;
  /// How many shapes of batches are recorded, the first that come. Recordings share the memory of their
  /// activations.
  int recorded_kinds = 1;
  /// An exponential average of the weights (WeightAverage) keeps this share of itself in every step, and less
  /// at the beginning of a run, where it is nearer to the mean of all weights so far; 0: no average.
  /// Evaluations measure the averaged weights, and `read_weights` reads them from checkpoints. The weights
  /// that are trained do not depend on it.
  double average = 0;
  /// Steps between two updates of the average, each for as many steps at once. Wherever the average is read,
  /// in between as well, the steps since the last update are part of it.
  std::int64_t average_every = 10;
  /// What the metadata of checkpoints say beside the trainer's own: the config of the model, say. A run may
  /// resume only from a checkpoint that says the same.
  std::map<std::string, std::string> settings = {};

  TrainerConfig with_steps(std::int64_t v) const { return detail::with(*this, &TrainerConfig::steps, v); }
  TrainerConfig with_schedule(optim::Schedule v) const {
    return detail::with(*this, &TrainerConfig::schedule, v);
  }
  TrainerConfig with_schedule_change(ScheduleChange v) const {
    return detail::with(*this, &TrainerConfig::schedule_change, v);
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
  /// Stops when the metric of with_best has not improved for this many evaluations in a row.
  TrainerConfig with_early_stopping(std::int64_t evaluations, double delta = 0) const {
    return detail::with(detail::with(*this, &TrainerConfig::patience, evaluations), &TrainerConfig::min_delta,
                        delta);
  }
  TrainerConfig with_non_finite(NonFinite v) const {
    return detail::with(*this, &TrainerConfig::non_finite, v);
  }
  TrainerConfig with_check_every(std::int64_t v) const {
    return detail::with(*this, &TrainerConfig::check_every, v);
  }
  TrainerConfig with_loss_scaler(optim::LossScalerConfig v = {}) const {
    return detail::with(*this, &TrainerConfig::loss_scaler, v);
  }
  TrainerConfig with_capture(Capture v = Capture::required) const {
    return detail::with(*this, &TrainerConfig::capture, v);
  }
  TrainerConfig with_recorded_kinds(int v) const {
    return detail::with(*this, &TrainerConfig::recorded_kinds, v);
  }
  TrainerConfig with_average(double keep, std::int64_t every = 10) const {
    return detail::with(detail::with(*this, &TrainerConfig::average, keep), &TrainerConfig::average_every,
                        every);
  }
  TrainerConfig with_setting(const std::string& name, std::string value) const {
    TrainerConfig config = *this;
    config.settings[name] = std::move(value);
    return config;
  }
  /// Throws ValueError for counts that make no sense.
  FERRITE_API void check() const;
};

}  // namespace ferrite::train
