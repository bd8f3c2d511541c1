// Trainer: the loop from batches to updates, with evaluation, checkpoints and resumption.
#pragma once

#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "ferrite/data/loader.hpp"
#include "ferrite/data/prefetch.hpp"
#include "ferrite/optim/optimizer.hpp"
#include "ferrite/train/captured_step.hpp"
#include "ferrite/train/metric.hpp"
#include "ferrite/train/non_finite.hpp"
#include "ferrite/train/ranks.hpp"
#include "ferrite/train/rewind.hpp"
#include "ferrite/train/trainer_base.hpp"
#include "ferrite/train/weight_average.hpp"

namespace ferrite::train {

/// The caller owns model, optimiser and source (a DataLoader, or any other); they must outlive the trainer.
template <class B>
class Trainer final : public TrainerBase {
 public:
  Trainer(nn::Module<B>& model, optim::Optimizer<B>& optimizer, data::BatchSource& source,
          StepFunction<B> step, TrainerConfig config)
      : TrainerBase(source, std::move(config)),
        model_(model),
        optimizer_(optimizer),
        apply_(std::move(step)),
        backend_(optimizer.parameters()[0].tensor.backend()) {
    metrics_.push_back(std::make_unique<MeanLoss<B>>());
    compare_parameters();
    relay_notices();
    prepare_loss_scaler();
    prepare_capture();
    if (config_.average > 0) average_.emplace(model_);
  }

  /// How batches get to the backend; without it their elements are copied. The loading must outlive the
  /// trainer.
  void load_by(Loading<B>& loading) {
    loading_ = &loading;
    recordings_.clear();
    replayed_ = nullptr;
  }
  /// Steps are made with other ranks, each of which has a trainer with the same config and its own batches.
  /// Losses and metrics are means over the ranks, and so every rank calls fit, advance and evaluate. Rank 0
  /// writes checkpoints; all ranks resume from them, in any number. Must outlive the trainer.
  void train_with(Ranks<B>& ranks);
  /// Every evaluation measures it, beside the loss.
  void add_metric(std::unique_ptr<Metric<B>> metric) { metrics_.push_back(std::move(metric)); }
  void validate_on(data::Dataset dataset) {
    validation_ = [this, set = std::move(dataset)] { return evaluate(set); };
  }
  /// On the next `batches` batches of a source, which must outlive the trainer; if it can seek, always on the
  /// same ones, from where it stands now. A source that gives only whole batches (data::TokenLoader) leaves
  /// out what remains of its data after the last one. Throws ValueError if batches < 1.
  /// ValueError also for the source it trains on, whose place an evaluation would change.
  void validate_on(data::BatchSource& source, std::int64_t batches) {
    check_batches(batches);
    check_apart(source);
    validation_ = [this, &source, batches, start = source.position()] {
      if (source.can_seek()) source.seek(start);
      return evaluate(source, batches);
    };
  }

  /// Trains up to config.steps, or until it stops early; then evaluates and saves once more. Throws
  /// ValueError at once if the metric of with_best is not measured, if a loss is not finite (see NonFinite),
  /// or if the weights hold NaN in the end. After request_stop it saves, and does not evaluate.
  Outcome fit();
  /// Trains `steps` steps, or fewer for the reasons above.
  Outcome advance(std::int64_t steps);
  /// All metrics over a data set, in inference mode and without a graph.
  Evaluation evaluate(const data::Dataset& dataset);
  /// The same over the next `batches` batches of a source, or those that it still has.
  Evaluation evaluate(data::BatchSource& source, std::int64_t batches);

  /// The weights that evaluations measure now: averages where there are some. read_weights gives the same
  /// from a checkpoint of this step. On any rank, by itself.
  NamedTensors weights();
  /// Writes on the rank that calls it. If the optimiser is sharded, every rank calls it, and rank 0 writes.
  void save(const std::filesystem::path& path) {
    const Checkpoint checkpoint = snapshot();
    if (!optimizer_.is_sharded() || writes_files()) write_checkpoint(path, checkpoint);
  }
  /// Resumes where the checkpoint was written. If the source can seek, the weights after any further step
  /// are, bit for bit, those of a run that was never interrupted. Throws, with nothing changed, if the file
  /// is damaged or was written by a run with another model, optimiser, schedule or data order. The number of
  /// steps may differ (see TrainerConfig::steps).
  void resume(const std::filesystem::path& path);
  /// Resumes from the newest undamaged file in the checkpoint folder, with a notice for each damaged one;
  /// false if there is no file. Throws ParseError if all are damaged.
  bool resume_latest() {
    return resume_newest([this](const std::filesystem::path& path) { resume(path); });
  }

 private:
  struct UnreadLoss {
    std::int64_t step;
    Tensor<B> value;
  };
  enum class Step : std::uint8_t { done, skipped, out_of_data };
  struct Recording {
    int eager_steps = 2;  // before it is made
    std::unique_ptr<CapturedStep<B>> step;
    Tensor<typename optim::Optimizer<B>::Kernels> gradient_norm;  // which replays fill
  };

  bool on_any_rank(bool here) override;
  bool writes_files() const { return !ranks_ || ranks_->rank() == 0; }
  /// Every rank has a share of a sharded optimiser, and gives it to the one that writes.
  template <class Save>
  void save_by(Save&& save) {
    if (!writes_files() && !optimizer_.is_sharded()) return;
    const Checkpoint checkpoint = snapshot();
    if (writes_files()) save(checkpoint);
  }
  void compare_parameters();
  void relay_notices() {
    for (; relayed_ < optimizer_.notices().size(); ++relayed_) notice(optimizer_.notices()[relayed_]);
    if (!ranks_) return;
    for (; relayed_of_ranks_ < ranks_->notices().size(); ++relayed_of_ranks_)
      notice(ranks_->notices()[relayed_of_ranks_]);
  }
  void check_ready();
  /// Weights may have been loaded since the trainer was made.
  void begin_average() {
    if (average_ && step_ == 0) average_->restart();
  }
  void check_same_run();
  bool pulls_on_all_ranks(std::vector<data::HostBatch>& batches, std::int64_t& rows);
  Step train_step(Rewind<B>& rewind);
  Step eager_step(Rewind<B>& rewind, const std::vector<data::HostBatch>& pulled, std::int64_t& rows);
  Tensor<B> learn(const data::Batch<B>& batch, Gradients<typename B::Inner>& grads, bool is_last);
  void prepare_loss_scaler();
  void prepare_capture();
  void capture(Recording& recording, const std::vector<data::HostBatch>& batches);
  std::string kind_of(const std::vector<data::HostBatch>& batches) const;
  const Recording* replay(const std::vector<data::HostBatch>& batches);
  std::optional<BadLoss> read_losses();
  void settle();
  void tell_progress();
  template <class Next>
  Evaluation measure(Next&& next);
  void evaluate_validation();
  double average_keeps(std::int64_t steps) const;
  std::int64_t steps_since_average() const { return step_ % config_.average_every; }
  Checkpoint snapshot();
  std::map<std::string, Rng*> rngs() { return Rewind<B>(model_, own_rngs_).rngs(); }

  nn::Module<B>& model_;
  optim::Optimizer<B>& optimizer_;
  StepFunction<B> apply_;
  BackendRef<B> backend_;
  std::vector<std::unique_ptr<Metric<B>>> metrics_;
  std::function<Evaluation()> validation_;
  std::vector<UnreadLoss> unread_;                  // losses that are still only on the device
  std::size_t relayed_ = 0, relayed_of_ranks_ = 0;  // notices of the optimiser and of the ranks
  Ranks<B>* ranks_ = nullptr;                       // if there are several

  // With capture: a recording for each kind of batches (Loading::kind), and the one that the last step ran.
  bool captures_ = false;
  bool kinds_agree_ = true;  // of the batches of all ranks, at this step
  std::map<std::string, Recording> recordings_;
  const Recording* replayed_ = nullptr;

  std::optional<WeightAverage<B>> average_;
  Loading<B> copies_;
  Loading<B>* loading_ = &copies_;
};

/// An optimiser of another model would train parameters that no checkpoint holds.
template <class B>
void Trainer<B>::compare_parameters() {
  const auto leaf = [](const nn::NamedParameter<B>& p) -> const void* {
    return p.tensor.primitive().node.get();
  };
  std::set<const void*> of_model, of_optimizer;
  for (const auto& p : model_.parameters()) of_model.insert(leaf(p));
  for (const auto& p : optimizer_.parameters()) {
    of_optimizer.insert(leaf(p));
    if (!of_model.contains(leaf(p)))
      throw ValueError("[trainer] '" + p.name +
                       "' of the optimiser is not a parameter of the model: make the " +
                       "optimiser from this model's parameters()");
  }
  std::vector<std::string> left_out;
  for (const auto& p : model_.parameters())
    if (nn::is_trainable(p.tensor) && !of_optimizer.contains(leaf(p))) left_out.push_back(p.name);
  if (!left_out.empty())
    notice("[trainer] parameters that the optimiser does not have, and so never change: " +
           quoted_names(left_out));
}

template <class B>
void Trainer<B>::check_ready() {
  std::vector<std::string> names;
  for (const auto& metric : metrics_) names.push_back(metric->name());
  check_measurable(names, static_cast<bool>(validation_));
}

template <class B>
Outcome Trainer<B>::fit() {
  check_ready();
  const Outcome outcome = advance(config_.steps - step_);
  const auto save_last = [this] {
    if (folder_ && std::exchange(saved_step_, step_) != step_)
      save_by([this](const Checkpoint& c) { save_numbered(c); });
  };
  if (!folder_) check_finite(model_.state(), " after the last update");  // else as it is saved
  try {
    if (outcome != Outcome::interrupted && validation_ && evaluated_step_ != step_) evaluate_validation();
  } catch (...) {
    save_last();  // a metric that fails must not lose the training
    throw;
  }
  save_last();
  tell([](Observer& o) { o.on_finish(); });
  return outcome;
}

template <class B>
Outcome Trainer<B>::advance(std::int64_t steps) {
  check_ready();
  check_same_run();
  if (writes_files()) notice_earlier_run();
  begin_average();
  const nn::ModeScope<B> scope(model_, nn::Mode::training);
  Rewind<B> rewind(model_, own_rngs_);
  const std::int64_t end = std::min(config_.steps, step_ + steps);
  Outcome outcome = Outcome::finished;
  while (step_ < end) {
    if (patience_spent()) return Outcome::stopped_early;
    if (take_stop_request()) {
      tell_progress();
      return Outcome::interrupted;
    }
    const Step result = train_step(rewind);
    if (result == Step::skipped) continue;
    if (result == Step::out_of_data) {
      notice("[trainer] stopped at step " + std::to_string(step_) + ": the source has no more batches");
      outcome = Outcome::out_of_data;
    }
    if (result == Step::done && average_ && due(config_.average_every))
      average_->update(average_keeps(config_.average_every));
    const bool last = step_ == end || outcome == Outcome::out_of_data;
    if (step_ % config_.report_every == 0 || last) tell_progress();
    if (outcome == Outcome::out_of_data) break;
    if (validation_ && due(config_.evaluate_every)) evaluate_validation();
    if (folder_ && due(config_.checkpoint_every)) {
      settle();
      saved_step_ = step_;
      save_by([this](const Checkpoint& c) { save_numbered(c); });
    }
  }
  return outcome == Outcome::finished && patience_spent() ? Outcome::stopped_early : outcome;
}

template <class B>
template <class Next>
Evaluation Trainer<B>::measure(Next&& next) {
  begin_average();
  const nn::ModeScope<B> scope(model_, nn::Mode::inference);
  const NoGrad no_grad;
  std::optional<typename WeightAverage<B>::Scope> averaged;
  if (average_) averaged.emplace(*average_, average_keeps(steps_since_average()));
  for (auto& metric : metrics_) metric->reset();
  // Random draws of an evaluation are undone, so that training does not depend on how often it is evaluated.
  if (ranks_) ranks_->broadcast_buffers();
  Rewind<B> rewind(model_, own_rngs_);
  std::int64_t rows = 0;
  std::vector<double> values;
  std::exception_ptr error;
  try {
    while (const std::optional<data::HostBatch> host = next()) {
      const data::Batch<B> batch = loading_->load(*backend_, *host);
      const Prediction<B> prediction = apply_(batch);
      for (auto& metric : metrics_) metric->add(prediction, batch);
      rows += host->size();
    }
    for (auto& metric : metrics_) values.push_back(metric->value());
  } catch (...) {
    error = std::current_exception();
  }
  rewind.back();
  const bool fails = on_any_rank(error != nullptr);  // on all together: what follows needs every rank
  if (error) std::rethrow_exception(error);
  if (fails) throw_others_failed();
  if (ranks_) values = ranks_->mean(values, static_cast<double>(rows));
  Evaluation result;
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    result.values.emplace_back(metrics_[i]->name(), values[i]);
  return result;
}

template <class B>
Evaluation Trainer<B>::evaluate(const data::Dataset& dataset) {
  data::DataLoader loader(
      dataset,
      data::LoaderConfig{}.with_batch_size(source_.batch_size()).with_order(data::Order::sequential));
  return evaluate(loader, loader.batches_per_epoch());
}

template <class B>
Evaluation Trainer<B>::evaluate(data::BatchSource& source, std::int64_t batches) {
  check_batches(batches);
  return measure([&] { return batches-- > 0 ? source.pull() : std::nullopt; });
}

template <class B>
void Trainer<B>::evaluate_validation() {
  settle();
  if (judge(validation_()) && folder_) save_by([this](const Checkpoint& c) { save_best(c); });
}

}  // namespace ferrite::train

#include "ferrite/train/trainer_state.hpp"
#include "ferrite/train/trainer_steps.hpp"
