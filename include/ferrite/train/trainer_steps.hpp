// The steps of a Trainer, op by op or as replays of a recorded one; trainer.hpp includes it.
#pragma once

#include "ferrite/train/trainer.hpp"

namespace ferrite::train {

template <class B>
void Trainer<B>::train_with(Ranks<B>& ranks) {
  ranks_ = &ranks;
  if (!captures_ || ranks.can_record()) return;
  captures_ = false;
  refuse_capture("the gradients of several ranks are summed by the host");
}

template <class B>
bool Trainer<B>::on_any_rank(bool here) {
  if (!ranks_) return here;
  const double flag[] = {here ? 1.0 : 0.0};
  return ranks_->largest(flag)[0] > 0;
}

/// Ranks with other options, or that resumed from other files, would train another model without a word.
template <class B>
void Trainer<B>::check_same_run() {
  if (!ranks_) {
    if (optimizer_.is_sharded()) throw_no_ranks();
    return;
  }
  NamedTensors weights;  // without buffers, which each rank has for itself
  for (const auto& p : model_.parameters()) weights.emplace(p.name, to_host(p.tensor));
  std::vector<std::string> lines = common_lines(optimizer_.name(), optimizer_.learning_rate(), weights);
  if (optimizer_.is_sharded()) lines.push_back(saving_line());  // all ranks take part in what one saves
  ranks_->check_same(lines);
}

/// The batches of a step, or false if a rank has no more. Recorded steps are those of all ranks: if their
/// batches differ in kind, this step is not one.
template <class B>
bool Trainer<B>::pulls_on_all_ranks(std::vector<data::HostBatch>& batches, std::int64_t& rows) {
  while (std::ssize(batches) < config_.micro_batches) {
    std::optional<data::HostBatch> host = source_.pull();
    if (!host) break;
    rows += host->size();
    batches.push_back(std::move(*host));
  }
  const bool ends = std::ssize(batches) < config_.micro_batches;
  if (!ranks_) return !ends;
  const double kind = captures_ ? number_of(kind_of(batches)) : 0;
  const double here[] = {ends ? 1.0 : 0.0, kind, -kind};
  const std::vector<double> all = ranks_->largest(here);
  kinds_agree_ = all[1] == -all[2];
  return all[0] == 0;
}

/// One update, or none if a batch is skipped.
template <class B>
typename Trainer<B>::Step Trainer<B>::train_step(Rewind<B>& rewind) {
  const auto start = Clock::now();
  if (config_.schedule) optimizer_.set_learning_rate(config_.schedule->at(step_));
  const bool looks = looks_at_losses(backend_->device().kind);
  std::vector<data::HostBatch> batches;  // a replay takes all at once, other steps one by one
  std::int64_t rows = 0;
  replayed_ = nullptr;
  if (captures_ || ranks_) {
    if (!pulls_on_all_ranks(batches, rows)) return Step::out_of_data;
    if (captures_ && kinds_agree_) replayed_ = replay(batches);
  }
  if (!replayed_) {
    const Step result = eager_step(rewind, batches, rows);
    if (result != Step::done) return result;
  }
  relay_notices();
  step_done(rows, Clock::now() - start);
  if (replayed_ && looks) settle();
  return Step::done;
}

/// On batches that were pulled already, or else on those of the source.
template <class B>
typename Trainer<B>::Step Trainer<B>::eager_step(Rewind<B>& rewind,
                                                 const std::vector<data::HostBatch>& pulled,
                                                 std::int64_t& rows) {
  rewind.mark();
  const auto give_up = [&](const std::string& what) {
    rewind.back();
    unread_.clear();
    if (config_.non_finite == NonFinite::stop) throw_non_finite(step_ + 1, what);
    skip(what);
    return Step::skipped;
  };
  Gradients<typename B::Inner> grads;
  std::string bad_here;  // with several ranks: what is wrong on this one
  rows = 0;
  for (std::int64_t i = 0; i < config_.micro_batches; ++i) {
    const std::optional<data::HostBatch> host =
        pulled.empty() ? source_.pull() : std::optional(pulled[static_cast<std::size_t>(i)]);
    if (!host) {
      rewind.back();
      std::erase_if(unread_, [&](const UnreadLoss& loss) { return loss.step > step_; });
      return Step::out_of_data;
    }
    const data::Batch<B> batch = loading_->load(*backend_, *host);
    unread_.push_back({step_ + 1, learn(batch, grads, i + 1 == config_.micro_batches)});
    rows += batch.size();
    if (!looks_at_losses(backend_->device().kind)) continue;
    const std::optional<BadLoss> bad = read_losses();
    if (!bad) continue;
    if (bad->step <= step_) throw_late(*bad);
    rewind.back();
    const std::string what = to_string(*bad) + "; " + explain_non_finite(model_, apply_, *host, batch);
    if (!ranks_ || config_.non_finite == NonFinite::stop) return give_up(what);
    if (bad_here.empty()) bad_here = what;
  }
  double losses = static_cast<double>(config_.micro_batches);
  if (ranks_) {
    losses = ranks_->finish(grads);
    if (config_.non_finite == NonFinite::skip && on_any_rank(!bad_here.empty()))
      return give_up(bad_here.empty() ? "the loss of another rank is not finite" : bad_here);
  }
  if (config_.non_finite == NonFinite::skip && !optimizer_.scales_losses()) {
    const std::vector<std::string> names = optimizer_.non_finite(grads);
    if (on_any_rank(!names.empty()))
      return give_up(names.empty() ? "gradients that are not finite, on another rank"
                                   : "gradients that are not finite, of " + quoted_names(names));
  }
  optimizer_.step(grads, losses);
  return Step::done;
}

/// The loss of a batch, whose gradients are added. After the last of a step those of other ranks may follow.
template <class B>
Tensor<B> Trainer<B>::learn(const data::Batch<B>& batch, Gradients<typename B::Inner>& grads, bool is_last) {
  const Prediction<B> prediction = apply_(batch);
  const Tensor<B> loss = optimizer_.scaled(prediction.loss);
  const auto release = BackwardConfig<typename B::Inner>{}.with_release();
  if (!ranks_)
    backward(loss, grads, release);
  else if (is_last)
    ranks_->backward(loss, grads, release);
  else
    ranks_->accumulate(loss, grads, release);
  return prediction.loss.detach();
}

template <class B>
void Trainer<B>::prepare_loss_scaler() {
  bool in_f16 = false;
  if constexpr (requires(const typename optim::Optimizer<B>::Kernels& k) { k.lowered_dtype(); })
    in_f16 = detail::kernel_backend(*backend_).lowered_dtype() == DType::f16;
  if (config_.loss_scaler || (in_f16 && !optimizer_.scales_losses()))
    optimizer_.scale_losses(config_.loss_scaler.value_or(optim::LossScalerConfig{}));
}

template <class B>
void Trainer<B>::prepare_capture() {
  captures_ = may_capture(can_record(*backend_), backend_->describe());
  if (captures_) optimizer_.keep_schedule_on_device();
}

/// Records the step on batches of one kind; none, with a notice or an error, if that fails on any rank.
template <class B>
void Trainer<B>::capture(Recording& recording, const std::vector<data::HostBatch>& batches) {
  std::vector<std::string> unused;
  const auto body = [&](const std::vector<data::Batch<B>>& inputs) {
    Gradients<typename B::Inner> grads;
    std::vector<Tensor<B>> losses;
    for (const data::Batch<B>& batch : inputs)
      losses.push_back(learn(batch, grads, losses.size() + 1 == inputs.size()));
    const double count = ranks_ ? ranks_->finish_recorded(grads) : static_cast<double>(inputs.size());
    optimizer_.step(grads, count);
    unused = optimizer_.missing(grads);
    recording.gradient_norm = optimizer_.gradient_norm_tensor();
    return losses;
  };
  const CapturedStep<B>* beside = nullptr;
  for (const auto& [kind, other] : recordings_)
    if (other.step) beside = other.step.get();
  std::string reason;
  try {
    recording.step = std::make_unique<CapturedStep<B>>(*backend_, model_, *loading_, batches, body, beside);
  } catch (const Error& error) {
    reason = error.what();
    if (ranks_) ranks_->abandon_recorded();
  }
  if (on_any_rank(!reason.empty())) {
    recordings_.clear();
    captures_ = false;
    return refuse_capture("the step cannot be recorded: " + (reason.empty() ? "on another rank" : reason));
  }
  // A parameter that only some ranks use would be updated by these alone.
  if (ranks_) ranks_->check_same(std::vector{"no gradient for " + quoted_names(unused)});
}

/// What recordings differ by.
template <class B>
std::string Trainer<B>::kind_of(const std::vector<data::HostBatch>& batches) const {
  std::string kind;
  for (const data::HostBatch& batch : batches) kind += loading_->kind(batch) + ";";
  return kind;
}

/// Trains by the recording for batches of this kind, and returns it; nothing if the step must run op by op.
template <class B>
const typename Trainer<B>::Recording* Trainer<B>::replay(const std::vector<data::HostBatch>& batches) {
  const std::string kind = kind_of(batches);
  if (!recordings_.contains(kind) && std::ssize(recordings_) >= config_.recorded_kinds) return nullptr;
  Recording& recording = recordings_[kind];
  if (recording.eager_steps > 0) {
    --recording.eager_steps;
    return nullptr;
  }
  if (!recording.step) {
    capture(recording, batches);
    if (!captures_) return nullptr;
  }
  for (Tensor<B>& loss : recording.step->run(batches)) unread_.push_back({step_ + 1, std::move(loss)});
  return &recording;
}

/// Moves the losses into the report; returns the first that is not finite, if any.
template <class B>
std::optional<BadLoss> Trainer<B>::read_losses() {
  std::optional<BadLoss> bad;
  for (const UnreadLoss& loss : unread_) {
    const double value = loss.value.template item<double>();
    if (std::isfinite(value)) {
      window_.losses += value;
      ++window_.batches;
    } else if (!bad) {
      bad = BadLoss{loss.step, value};
    }
  }
  unread_.clear();
  return bad;
}

/// A report, an evaluation or a checkpoint follows, which needs finite losses.
template <class B>
void Trainer<B>::settle() {
  const auto start = Clock::now();
  if (const std::optional<BadLoss> bad = read_losses()) throw_late(*bad);
  window_.busy += Clock::now() - start;
}

template <class B>
void Trainer<B>::tell_progress() {
  settle();
  if (ranks_) {
    const double here[] = {window_.losses, static_cast<double>(window_.batches),
                           static_cast<double>(window_.rows * ranks_->size())};
    const std::vector<double> all = ranks_->mean(here, 1);
    window_.losses = all[1] > 0 ? all[0] / all[1] * static_cast<double>(window_.batches) : 0;
    window_.rows = std::llround(all[2]);
  }
  double norm = 0, scale = 0;
  if (!observers_.empty()) {  // reading them waits for the device
    const bool captured = replayed_ && replayed_->gradient_norm.defined();
    norm = captured ? replayed_->gradient_norm.template item<double>() : optimizer_.gradient_norm();
    if (optimizer_.scales_losses()) scale = optimizer_.loss_scale();
  }
  report(optimizer_.learning_rate(), norm, scale, backend_->memory_stats().peak);
}

}  // namespace ferrite::train
