// TrainerBase: the parts of a trainer that do not depend on the backend: notices, reports, the best value,
// patience, checkpoint files. Compiled once for all backends.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <span>

#include "ferrite/train/checkpoint.hpp"
#include "ferrite/train/config.hpp"
#include "ferrite/train/observer.hpp"

namespace ferrite::train {

/// Why training ended: all steps are done, the metric stopped improving, the source had no more data, or
/// request_stop was called.
enum class Outcome : std::uint8_t { finished, stopped_early, out_of_data, interrupted };

/// A loss that is NaN or inf.
struct BadLoss {
  std::int64_t step = 0;
  double value = 0;
};
/// "the loss is NaN"
FERRITE_API std::string to_string(const BadLoss& loss);

class FERRITE_API TrainerBase {
 public:
  virtual ~TrainerBase() = default;

  /// Must outlive the trainer. Is told at once of earlier notices and of a checkpoint that the run resumed
  /// from.
  void add_observer(Observer& observer);
  /// Everything that observers were told through on_notice.
  const std::vector<std::string>& notices() const { return notices_; }
  /// A generator that the step function draws from, so that checkpoints hold its position too.
  void add_rng(const std::string& name, Rng& rng) { own_rngs_["step." + name] = &rng; }

  std::int64_t step() const { return step_; }

  /// Training ends after the step under way. `fit` still saves a checkpoint. From any thread, an observer, or
  /// the handler of a signal.
  void request_stop() noexcept { stop_requested_ = true; }
  /// A stop was requested, here or on another rank, and training has not begun again: observers should be
  /// brief.
  bool is_stopping() const noexcept { return stop_requested_ || stopping_; }

 protected:
  using Clock = std::chrono::steady_clock;

  TrainerBase(data::BatchSource& source, TrainerConfig config);

  /// Throws ValueError if a metric that the config asks for is not measured.
  void check_measurable(std::span<const std::string> metrics, bool has_validation) const;

  /// Throws ValueError unless an evaluation has at least one batch.
  static void check_batches(std::int64_t batches);
  /// Throws ValueError if evaluations are to be on the source that is trained on.
  void check_apart(const data::BatchSource& source) const;
  /// Throws ValueError if a tensor holds NaN: "'weight' holds NaN" and `then`.
  void check_finite(const NamedTensors& tensors, std::string_view then) const;
  /// The learning rate of a checkpoint takes the place of the program's.
  void notice_rate(double given, double found);
  /// At step 0: says so if the checkpoint folder has files of another run.
  void notice_earlier_run();
  /// Whether steps are recorded, if the backend can record; refuses as below.
  bool may_capture(bool can_record, const std::string& backend);
  /// A notice, or BackendError if the config requires capture.
  void refuse_capture(const std::string& reason);

  bool due(std::int64_t every) const { return every > 0 && step_ % every == 0; }
  bool patience_spent() const { return config_.patience > 0 && stale_ >= config_.patience; }

  /// Whether the losses, including that of the current step, are read before its update.
  bool looks_at_losses(DeviceKind device) const;

  void notice(std::string text);
  /// Calls event(observer) for each. A report that cannot be written is a notice, and no end of the training.
  void tell(const std::function<void(Observer&)>& event);
  void tell(Observer& observer, const std::function<void(Observer&)>& event);
  void step_done(std::int64_t rows, Clock::duration busy);
  void report(double lr, double gradient_norm, double loss_scale, std::size_t memory_bytes);
  /// True once for a request, of any rank.
  bool take_stop_request();
  /// Whether this holds on any of the ranks that train together.
  virtual bool on_any_rank(bool here) { return here; }
  /// Tells the observers. True if the value of best_metric is the best so far.
  bool judge(const Evaluation& evaluation);
  /// Throws ValueError, and writes nothing, if the state holds NaN.
  void save_numbered(const Checkpoint& checkpoint);
  void save_best(const Checkpoint& checkpoint);

  /// Throws ValueError with the step, what is wrong, and where the last good state is.
  [[noreturn]] void throw_non_finite(std::int64_t step, const std::string& what) const;
  /// The same for a loss that was read only after its update.
  [[noreturn]] void throw_late(const BadLoss& loss) const;
  /// Skips a step; throws as above if there were too many in a row.
  void skip(const std::string& what);

  std::map<std::string, std::string> settings(std::string_view optimizer) const;
  /// What ranks that train together must have in common.
  std::vector<std::string> common_lines(std::string_view optimizer, double learning_rate,
                                        const NamedTensors& weights) const;
  /// A checksum of a text, as a whole number that ranks compare.
  static double number_of(const std::string& text);
  /// When this rank evaluates and saves, in words.
  std::string saving_line() const;
  [[noreturn]] void throw_others_failed() const;
  [[noreturn]] void throw_no_ranks() const;
  /// Throws unless the run may resume from the checkpoint.
  void check_resumable(const std::filesystem::path& path, const Checkpoint& checkpoint,
                       std::string_view optimizer, const std::map<std::string, Rng*>& rngs);
  /// Writes step, position, best value and patience to a checkpoint, and restores them after everything else.
  void fill(Checkpoint& checkpoint) const;
  void take_over(const Checkpoint& checkpoint);
  /// Calls resume(path) for the newest undamaged checkpoint; false if there is no file.
  bool resume_newest(const std::function<void(const std::filesystem::path&)>& resume);

  data::BatchSource& source_;
  TrainerConfig config_;
  std::map<std::string, Rng*> own_rngs_;
  std::optional<CheckpointFolder> folder_;
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = -1, evaluated_step_ = -1;
  std::optional<double> best_;

  /// What happened since the last report.
  struct Window {
    double losses = 0;
    std::int64_t steps = 0, batches = 0, rows = 0;
    Clock::duration busy{};
  } window_;
  std::vector<Observer*> observers_;

 private:
  void check_saveable(const Checkpoint& checkpoint) const;

  std::vector<std::string> notices_;
  std::int64_t stale_ = 0;  // evaluations in a row without improvement
  int skipped_ = 0;         // steps in a row
  std::optional<std::int64_t> resumed_step_;
  std::atomic<bool> stop_requested_ = false;
  bool stopping_ = false;  // a request was taken
};

}  // namespace ferrite::train
