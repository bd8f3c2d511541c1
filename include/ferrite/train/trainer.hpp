// Trainer: the loop from batches to updates, with evaluation, checkpoints and resumption.
#pragma once

#include <cmath>
#include <memory>

#include "ferrite/optim/optimizer.hpp"
#include "ferrite/train/checkpoint.hpp"
#include "ferrite/train/config.hpp"
#include "ferrite/train/metric.hpp"
#include "ferrite/train/observer.hpp"

namespace ferrite::train {

/// Model, optimiser and loader are the caller's and must outlive the trainer.
template <class B>
class Trainer {
 public:
  Trainer(nn::Module<B>& model, optim::Optimizer<B>& optimizer, data::DataLoader& loader,
          StepFunction<B> step, TrainerConfig config)
      : model_(model),
        optimizer_(optimizer),
        loader_(loader),
        apply_(std::move(step)),
        config_(std::move(config)) {
    config_.check();
    const auto parameters = model_.parameters();
    if (parameters.empty())
      throw ValueError("[trainer] the model has no parameters: there is nothing to train");
    backend_ = parameters[0].tensor.backend();
    metrics_.push_back(std::make_unique<MeanLoss<B>>());
    if (!config_.checkpoint_folder.empty())
      folder_.emplace(config_.checkpoint_folder, config_.keep_checkpoints);
  }

  /// Measured by every evaluation, beside the loss.
  void add_metric(std::unique_ptr<Metric<B>> metric) { metrics_.push_back(std::move(metric)); }
  /// Must outlive the trainer.
  void add_observer(Observer& observer) { observers_.push_back(&observer); }
  /// A generator that the step function draws from, so that checkpoints hold its position too.
  void add_rng(const std::string& name, Rng& rng) { own_rngs_["step." + name] = &rng; }
  void validate_on(data::Dataset dataset) { validation_ = std::move(dataset); }

  std::int64_t step() const { return step_; }

  /// Trains up to config.steps, then evaluates and saves once more.
  void fit();
  /// Trains `steps` steps, or fewer if config.steps comes first.
  void advance(std::int64_t steps);
  /// All metrics over a data set, in inference mode and without a graph.
  Evaluation evaluate(const data::Dataset& dataset);

  void save(const std::filesystem::path& path) { write_checkpoint(path, snapshot()); }
  /// Goes on where the checkpoint was written: the weights after any further step are, bit for bit, those of
  /// a run that was never interrupted. Throws, with nothing changed, if the file is damaged or was written by
  /// a run with another model, optimiser, schedule or data order.
  void resume(const std::filesystem::path& path);
  /// Resumes from the newest file in the checkpoint folder; false if there is none.
  bool resume_latest() {
    const auto path = folder_ ? folder_->latest() : std::nullopt;
    if (path) resume(*path);
    return path.has_value();
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::int64_t train_step();
  void report();
  void evaluate_validation();
  void save_numbered();
  bool due(std::int64_t every) const { return every > 0 && step_ % every == 0; }
  Checkpoint snapshot();
  std::map<std::string, std::string> settings() const;
  std::map<std::string, Rng*> rngs();

  nn::Module<B>& model_;
  optim::Optimizer<B>& optimizer_;
  data::DataLoader& loader_;
  StepFunction<B> apply_;
  TrainerConfig config_;
  BackendRef<B> backend_;
  std::vector<std::unique_ptr<Metric<B>>> metrics_;
  std::vector<Observer*> observers_;
  std::map<std::string, Rng*> own_rngs_;
  std::optional<data::Dataset> validation_;
  std::optional<CheckpointFolder> folder_;

  std::int64_t step_ = 0;
  std::int64_t saved_step_ = -1, evaluated_step_ = -1;
  std::optional<double> best_;

  /// What happened since the last report.
  struct Window {
    Tensor<B> losses;
    std::int64_t steps = 0, batches = 0, rows = 0;
    Clock::duration busy{};
  } window_;
};

template <class B>
void Trainer<B>::fit() {
  advance(config_.steps - step_);
  if (validation_ && evaluated_step_ != step_) evaluate_validation();
  if (folder_ && saved_step_ != step_) save_numbered();
  for (Observer* o : observers_) o->on_finish();
}

template <class B>
void Trainer<B>::advance(std::int64_t steps) {
  const nn::ModeScope<B> scope(model_, nn::Mode::training);
  const std::int64_t end = std::min(config_.steps, step_ + steps);
  while (step_ < end) {
    const auto start = Clock::now();
    window_.rows += train_step();
    ++window_.steps;
    window_.busy += Clock::now() - start;
    if (step_ % config_.report_every == 0 || step_ == end) report();
    if (validation_ && due(config_.evaluate_every)) evaluate_validation();
    if (folder_ && due(config_.checkpoint_every)) save_numbered();
  }
}

/// One update; returns how many rows went into it.
template <class B>
std::int64_t Trainer<B>::train_step() {
  if (config_.schedule) optimizer_.set_learning_rate(config_.schedule->at(step_));
  Gradients<typename B::Inner> grads;
  std::int64_t rows = 0;
  for (std::int64_t i = 0; i < config_.micro_batches; ++i) {
    const data::Batch<B> batch = data::to_batch(*backend_, loader_.next());
    const Prediction<B> prediction = apply_(batch);
    backward(prediction.loss, grads);
    rows += batch.size();
    if (observers_.empty()) continue;
    const Tensor<B> loss = prediction.loss.detach();
    window_.losses = window_.losses.defined() ? window_.losses + loss : loss;
    ++window_.batches;
  }
  optimizer_.step(grads, static_cast<double>(config_.micro_batches));
  ++step_;
  return rows;
}

template <class B>
void Trainer<B>::report() {
  if (!observers_.empty()) {
    const auto start = Clock::now();
    const double loss = window_.losses.template item<double>() / static_cast<double>(window_.batches);
    const double seconds = std::chrono::duration<double>(window_.busy + (Clock::now() - start)).count();
    Progress progress{step_, config_.steps, loader_.position().epoch, loss, optimizer_.learning_rate()};
    progress.samples_per_second = static_cast<double>(window_.rows) / std::max(seconds, 1e-9);
    progress.seconds_left =
        seconds / static_cast<double>(window_.steps) * static_cast<double>(config_.steps - step_);
    for (Observer* o : observers_) o->on_progress(progress);
  }
  window_ = {};
}

template <class B>
Evaluation Trainer<B>::evaluate(const data::Dataset& dataset) {
  const nn::ModeScope<B> scope(model_, nn::Mode::inference);
  const NoGrad no_grad;
  for (auto& metric : metrics_) metric->reset();
  // What an evaluation draws is given back, so that training does not depend on how often it is watched.
  std::map<Rng*, std::uint64_t> positions;
  for (const auto& item : rngs()) positions[item.second] = item.second->position();
  data::DataLoader loader(
      dataset,
      data::LoaderConfig{}.with_batch_size(loader_.config().batch_size).with_order(data::Order::sequential));
  for (const data::Batch<B>& batch : loader.epoch(*backend_)) {
    const Prediction<B> prediction = apply_(batch);
    for (auto& metric : metrics_) metric->add(prediction, batch);
  }
  for (const auto& [rng, position] : positions) rng->set_position(position);
  Evaluation result;
  for (auto& metric : metrics_) result.values.emplace_back(metric->name(), metric->value());
  return result;
}

template <class B>
void Trainer<B>::evaluate_validation() {
  const Evaluation evaluation = evaluate(*validation_);
  evaluated_step_ = step_;
  for (Observer* o : observers_) o->on_evaluation(step_, evaluation);
  const double value = evaluation[config_.best_metric];
  const bool improved = !best_ || (config_.better == Better::higher ? value > *best_ : value < *best_);
  if (!improved || std::isnan(value)) return;
  best_ = value;
  if (!folder_) return;
  const auto path = folder_->save_best(snapshot());
  for (Observer* o : observers_) o->on_checkpoint(step_, path);
}

template <class B>
void Trainer<B>::save_numbered() {
  const auto path = folder_->save(snapshot());
  saved_step_ = step_;
  for (Observer* o : observers_) o->on_checkpoint(step_, path);
}

template <class B>
std::map<std::string, Rng*> Trainer<B>::rngs() {
  struct Collector final : nn::Visitor<B> {
    std::map<std::string, Rng*> found;
    void on_rng(const std::string& name, Rng& rng) override { found["model." + name] = &rng; }
  } collector;
  model_.visit(collector);
  collector.found.insert(own_rngs_.begin(), own_rngs_.end());
  return std::move(collector.found);
}

template <class B>
std::map<std::string, std::string> Trainer<B>::settings() const {
  return {{"optimizer", std::string(optimizer_.name())},
          {"schedule", config_.schedule ? config_.schedule->describe() : "none"},
          {"data", loader_.describe()},
          {"micro_batches", std::to_string(config_.micro_batches)}};
}

template <class B>
Checkpoint Trainer<B>::snapshot() {
  Checkpoint c;
  c.model = model_.state();
  c.optimizer = optimizer_.state();
  for (const auto& [name, rng] : rngs()) c.rngs[name] = {rng->seed(), rng->position()};
  c.step = step_;
  c.position = loader_.position();
  c.best = best_;
  c.settings = settings();
  return c;
}

template <class B>
void Trainer<B>::resume(const std::filesystem::path& path) {
  const Checkpoint c = read_checkpoint(path);
  const std::map<std::string, Rng*> generators = rngs();
  check_settings(path, c.settings, settings());
  check_rngs(path, c.rngs, generators);
  const data::LoaderPosition before = loader_.position();
  const NamedTensors optimizer_before = optimizer_.state();
  try {
    loader_.seek(c.position);
    optimizer_.load_state(c.optimizer);
    model_.load_state(c.model);
  } catch (...) {
    loader_.seek(before);
    optimizer_.load_state(optimizer_before);
    throw;
  }
  for (const auto& [name, rng] : generators) rng->set_position(c.rngs.at(name).stream);
  step_ = saved_step_ = c.step;
  best_ = c.best;
  window_ = {};
}

}  // namespace ferrite::train
