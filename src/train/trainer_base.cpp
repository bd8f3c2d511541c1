// Notices, reports, the best value, patience, checkpoint files.
#include "ferrite/train/trainer_base.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/hash.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/data/finite.hpp"

namespace ferrite::train {
namespace fs = std::filesystem;

std::string to_string(const BadLoss& loss) {
  return fmt::format("the loss is {}", std::isnan(loss.value) ? "NaN" : loss.value > 0 ? "inf" : "-inf");
}

TrainerBase::TrainerBase(data::BatchSource& source, TrainerConfig config)
    : source_(source), config_(std::move(config)) {
  config_.check();
  if (!config_.checkpoint_folder.empty())
    folder_.emplace(config_.checkpoint_folder, config_.keep_checkpoints);
}

void TrainerBase::add_observer(Observer& observer) {
  observers_.push_back(&observer);
  const std::vector<std::string> earlier = notices_;
  if (resumed_step_) tell(observer, [&](Observer& o) { o.on_resume(*resumed_step_); });
  for (const std::string& text : earlier) observer.on_notice(text);
}

void TrainerBase::check_measurable(std::span<const std::string> metrics, bool has_validation) const {
  if (std::find(metrics.begin(), metrics.end(), config_.best_metric) == metrics.end()) {
    throw ValueError(fmt::format("[trainer] with_best('{}'): there are {}; add_metric adds one before fit",
                                 config_.best_metric, fmt::join(metrics, ", ")));
  }
  if (config_.patience > 0 && !(has_validation && config_.evaluate_every > 0))
    throw ValueError("[trainer] early stopping: needs validate_on and with_evaluate_every");
}

void TrainerBase::check_batches(std::int64_t batches) {
  if (batches < 1)
    throw ValueError(fmt::format("[trainer] evaluation on {} batches: must be at least 1", batches));
}

bool TrainerBase::may_capture(bool can_record, const std::string& backend) {
  if (config_.capture == Capture::never) return false;
  if (!can_record) {  // as it should be where nobody insists: a program may run on any backend
    if (config_.capture == Capture::required) refuse_capture(backend + " cannot record steps; cuda can");
    return false;
  }
  if (config_.non_finite != NonFinite::skip) return true;
  refuse_capture("NonFinite::skip reads every loss before the update");
  return false;
}

void TrainerBase::refuse_capture(const std::string& reason) {
  if (config_.capture == Capture::required)
    throw BackendError(fmt::format("[trainer] with_capture(Capture::required): {}", reason));
  notice(fmt::format("[trainer] no capture, steps run op by op: {}", reason));
}

bool TrainerBase::looks_at_losses(DeviceKind device) const {
  if (config_.non_finite == NonFinite::skip) return true;
  const std::int64_t automatic = device == DeviceKind::cpu ? 1 : config_.report_every;
  return (step_ + 1) % (config_.check_every > 0 ? config_.check_every : automatic) == 0;
}

void TrainerBase::tell(const std::function<void(Observer&)>& event) {
  for (Observer* o : observers_) tell(*o, event);
}

void TrainerBase::tell(Observer& observer, const std::function<void(Observer&)>& event) {
  try {
    event(observer);
  } catch (const IoError& error) {
    const std::string text = fmt::format("{}; the training goes on", error.what());
    if (std::ranges::find(notices_, text) == notices_.end()) notice(text);
  }
}

void TrainerBase::check_apart(const data::BatchSource& source) const {
  if (&source == &source_)
    throw ValueError(
        "[trainer] validate_on: this is the source that is trained on, whose place an evaluation would "
        "change; give another one over the same data");
}

void TrainerBase::notice_earlier_run() {
  if (!folder_ || step_ > 0 || saved_step_ >= 0 || resumed_step_) return;
  const auto newest = folder_->latest();
  if (!newest) return;
  const std::string text = fmt::format(
      "[trainer] {} is of an earlier run, and this one starts anew: to resume takes the file with the most "
      "steps, of whichever run; call resume_latest before, or give another folder",
      newest->string());
  if (std::ranges::find(notices_, text) == notices_.end()) notice(text);
}

void TrainerBase::notice_rate(double given, double found) {
  notice(
      fmt::format("[resume] the learning rate is the checkpoint's, {:g}, and not {:g}: to change it, call "
                  "set_learning_rate after resuming",
                  found, given));
}

void TrainerBase::notice(std::string text) {
  for (Observer* o : observers_) o->on_notice(text);
  notices_.push_back(std::move(text));
}

bool TrainerBase::take_stop_request() {
  stopping_ = on_any_rank(stop_requested_.exchange(false));
  if (!stopping_) return false;
  notice(fmt::format("[trainer] stopped at step {}, as requested", step_));
  return true;
}

void TrainerBase::report(double lr, double gradient_norm, double loss_scale, std::size_t memory_bytes) {
  const double seconds = std::chrono::duration<double>(window_.busy).count();
  if (!observers_.empty() && window_.steps > 0) {
    Progress progress{step_, config_.steps, source_.position().epoch,
                      window_.losses / static_cast<double>(std::max<std::int64_t>(window_.batches, 1)), lr};
    progress.samples_per_second = static_cast<double>(window_.rows) / std::max(seconds, 1e-9);
    progress.seconds_left =
        seconds / static_cast<double>(window_.steps) * static_cast<double>(config_.steps - step_);
    progress.gradient_norm = gradient_norm;
    progress.loss_scale = loss_scale;
    progress.memory_bytes = memory_bytes;
    tell([&](Observer& o) { o.on_progress(progress); });
  }
  window_ = {};
}

void TrainerBase::step_done(std::int64_t rows, Clock::duration busy) {
  ++step_;
  skipped_ = 0;
  ++window_.steps;
  window_.rows += rows;
  window_.busy += busy;
}

bool TrainerBase::judge(const Evaluation& evaluation) {
  evaluated_step_ = step_;
  tell([&](Observer& o) { o.on_evaluation(step_, evaluation); });
  const double value = evaluation[config_.best_metric];
  const double gain = !best_ ? INFINITY : config_.better == Better::higher ? value - *best_ : *best_ - value;
  const bool better = !std::isnan(value) && gain > config_.min_delta;
  if (better) best_ = value;
  stale_ = better ? 0 : stale_ + 1;
  if (patience_spent()) {
    notice(fmt::format("[trainer] stopped at step {}: '{}' has not got better in {} evaluations{}", step_,
                       config_.best_metric, stale_,
                       best_ ? fmt::format("; the best is {:.6g}", *best_) : ""));
  }
  return better;
}

void TrainerBase::check_finite(const NamedTensors& tensors, std::string_view then) const {
  for (const auto& [name, tensor] : tensors)
    if (first_nan(tensor) >= 0) throw_non_finite(step_, fmt::format("'{}' holds NaN{}", name, then));
}

void TrainerBase::check_saveable(const Checkpoint& checkpoint) const {
  for (const NamedTensors* tensors : {&checkpoint.model, &checkpoint.optimizer})
    check_finite(*tensors, ", so that the state is not saved");
}

void TrainerBase::save_numbered(const Checkpoint& checkpoint) {
  check_saveable(checkpoint);
  const fs::path path = folder_->save(checkpoint);
  saved_step_ = step_;
  tell([&](Observer& o) { o.on_checkpoint(step_, path); });
}

void TrainerBase::save_best(const Checkpoint& checkpoint) {
  check_saveable(checkpoint);
  const fs::path path = folder_->save_best(checkpoint);
  tell([&](Observer& o) { o.on_checkpoint(step_, path); });
}

void TrainerBase::throw_non_finite(std::int64_t step, const std::string& what) const {
  const auto good = folder_ ? folder_->latest() : std::nullopt;
  throw ValueError(fmt::format(
      "[trainer] step {}: {}; {}: mend the data or the model, learn more slowly (a lower learning rate, a "
      "longer warm-up), or pass over such batches (programs: with_non_finite(NonFinite::skip))",
      step, what,
      good ? fmt::format("the last good checkpoint is {}", good->string()) : "there is no checkpoint"));
}

void TrainerBase::throw_late(const BadLoss& loss) const {
  throw_non_finite(loss.step, fmt::format("{}, as was read at step {}, after its update (programs: "
                                          "with_check_every(1) looks before it, and names the op)",
                                          to_string(loss), step_));
}

void TrainerBase::skip(const std::string& what) {
  if (++skipped_ > max_skipped)
    throw_non_finite(step_ + 1, fmt::format("{}, and {} batches before it were skipped", what, max_skipped));
  notice(fmt::format("[trainer] step {}: {}: the batch is skipped", step_ + 1, what));
}

std::map<std::string, std::string> TrainerBase::settings(std::string_view optimizer) const {
  std::map<std::string, std::string> all = {
      {"optimizer", std::string(optimizer)},
      {"schedule", config_.schedule ? config_.schedule->describe() : "none"},
      {"data", source_.describe()},
      {"micro_batches", std::to_string(config_.micro_batches)}};
  if (config_.average > 0)
    all["average"] = fmt::format("{} every {} steps", config_.average, config_.average_every);
  all.insert(config_.settings.begin(), config_.settings.end());
  return all;
}

std::vector<std::string> TrainerBase::common_lines(std::string_view optimizer, double learning_rate,
                                                   const NamedTensors& weights) const {
  std::vector<std::string> lines{fmt::format("step {} of {}", step_, config_.steps),
                                 fmt::format("the learning rate {}", learning_rate)};
  for (const auto& [name, value] : settings(optimizer))
    lines.push_back(fmt::format("{} \"{}\"", name, value));
  std::uint64_t hash = hash_start;
  for (const auto& item : weights) hash = hash_bytes(item.second.bytes(), hash);
  lines.push_back(fmt::format("weights of checksum {:016x}", hash));
  return lines;
}

double TrainerBase::number_of(const std::string& text) {
  return static_cast<double>(hash_bytes(std::as_bytes(std::span(text)), hash_start) >>
                             16);  // 48 bits are exact
}

std::string TrainerBase::saving_line() const {
  return fmt::format("checkpoints {}, evaluations every {} steps",
                     folder_ ? fmt::format("every {} steps", config_.checkpoint_every) : "nowhere",
                     config_.evaluate_every);
}

void TrainerBase::throw_others_failed() const {
  throw ValueError(
      fmt::format("[trainer] the evaluation after step {} failed on another rank, which says why", step_));
}

void TrainerBase::throw_no_ranks() const {
  throw ValueError(
      "[trainer] the optimiser is sharded, and the other ranks are not known: call train_with(ranks) before "
      "fit");
}

void TrainerBase::check_resumable(const fs::path& path, const Checkpoint& checkpoint,
                                  std::string_view optimizer, const std::map<std::string, Rng*>& rngs) {
  std::map<std::string, std::string> current = settings(optimizer);
  const auto saved = checkpoint.settings.find("schedule");
  if (config_.schedule_change == ScheduleChange::accept && saved != checkpoint.settings.end())
    current["schedule"] = saved->second;
  check_settings(path, checkpoint.settings, current);
  check_rngs(path, checkpoint.rngs, rngs);
}

void TrainerBase::fill(Checkpoint& checkpoint) const {
  checkpoint.step = step_;
  checkpoint.position = source_.position();
  checkpoint.best = best_;
  checkpoint.stale = stale_;
}

void TrainerBase::take_over(const Checkpoint& checkpoint) {
  step_ = saved_step_ = checkpoint.step;
  evaluated_step_ = -1;
  best_ = checkpoint.best;
  stale_ = checkpoint.stale;
  window_ = {};
  skipped_ = 0;
  resumed_step_ = step_;
  tell([&](Observer& o) { o.on_resume(step_); });
  const auto saved = checkpoint.settings.find("schedule");
  const std::string schedule = config_.schedule ? config_.schedule->describe() : "none";
  if (saved != checkpoint.settings.end() && saved->second != schedule) {
    notice(fmt::format("[resume] the schedule is \"{}\" from step {} on; it was \"{}\"", schedule, step_,
                       saved->second));
  }
  if (!source_.can_seek()) {
    notice(fmt::format(
        "[resume] the source ({}) cannot seek: training goes on with the batches that come, not bit for bit",
        source_.describe()));
  }
  if (step_ >= config_.steps) {
    notice(fmt::format("[resume] the checkpoint is of step {} and the run has {}: nothing is left to train",
                       step_, config_.steps));
  }
}

bool TrainerBase::resume_newest(const std::function<void(const fs::path&)>& resume) {
  if (!folder_) return false;
  std::vector<std::string> damaged;
  std::string newest;
  const auto pass_over = [&](const fs::path& path, const Error& error) {
    if (damaged.empty()) newest = error.what();
    damaged.push_back(path.filename().string());
  };
  for (const fs::path& path : folder_->newest_first()) {
    try {
      resume(path);
    } catch (const ParseError& error) {
      pass_over(path, error);
      continue;
    } catch (const IoError& error) {
      pass_over(path, error);
      continue;
    }
    if (!damaged.empty()) {
      notice(fmt::format("[resume] from {}, since newer checkpoints cannot be read: {} ({})",
                         path.filename().string(), fmt::join(damaged, ", "), newest));
    }
    return true;
  }
  if (!damaged.empty())
    throw ParseError(
        fmt::format("[resume] none of the checkpoints {} can be read: {}", fmt::join(damaged, ", "), newest));
  return false;
}

}  // namespace ferrite::train
