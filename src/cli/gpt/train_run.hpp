// The training of `ferrite gpt train`, for any differentiating backend.
#pragma once

#include <optional>

#include "cli/gpt/model.hpp"
#include "cli/gpt/train_observers.hpp"
#include "cli/gpt/train_result.hpp"
#include "cli/input_files.hpp"
#include "cli/training_run.hpp"
#include "ferrite/data/token_loader.hpp"
#include "ferrite/dist/trainer_ranks.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli::gpt {

inline train::TrainerConfig trainer_config(const TrainOptions& o) {
  const auto schedule = optim::Schedule::cosine(o.lr, o.steps, o.lr / 10);
  return train::TrainerConfig{}
      .with_steps(o.steps)
      .with_schedule(o.warmup > 0 ? schedule.with_warmup(o.warmup) : schedule)
      .with_schedule_change(train::ScheduleChange::accept)  // more steps than first planned
      .with_micro_batches(o.micro_batches)
      .with_report_every(o.report_every)
      .with_evaluate_every(o.valid.empty() ? 0 : o.evaluate_every)
      .with_checkpoints(o.out, o.checkpoint_every)
      .with_capture(train::Capture::if_possible)
      .with_setting("update", update_setting(o.weight_decay, o.clip))
      .with_setting(train::gpt_setting, o.model.to_json());
}

template <class B>
int train_on(B backend, TrainingRanks& all, const TrainOptions& o) {
  auto windows = data::TokenLoaderConfig{}.with_batch(o.batch, o.length).with_vocab(o.model.vocab);
  if (!o.dtype.empty()) windows = windows.with_dtype(dtype_from_string(o.dtype));
  data::TokenLoader loader(input_files(o.data), windows.with_seed(o.seed).with_rank(all.rank(), all.size()));
  std::optional<data::TokenLoader> valid;
  if (!o.valid.empty()) valid.emplace(input_files(o.valid), windows.with_shuffle(false));
  std::optional<text::BytePairTokenizer> tokenizer;
  if (!o.tokenizer.empty()) {
    tokenizer = text::BytePairTokenizer::load(o.tokenizer);
    check_tokenizer(o.tokenizer, *tokenizer, o.model);
  }

  Rng rng(all.seed(o.seed));  // ranks draw other dropouts; their weights become those of rank 0
  auto model = o.from ? nn::Gpt<B>::blank(backend, o.model, rng) : nn::Gpt<B>(backend, o.model, rng);
  if (o.from) model.load_state(train::read_weights(*o.from));
  auto settings = optim::AdamWConfig{}
                      .with_lr(o.lr)
                      .with_betas(0.9, 0.95)
                      .with_weight_decay(o.weight_decay)
                      .with_no_decay(optim::biases_and_norms);
  if (o.clip > 0) settings = settings.with_clip_norm(o.clip);
  std::optional<dist::TrainerRanks<B>> ranks;
  if (all.size() > 1)
    ranks.emplace(model, all.group(), dist::DataParallelConfig{}.with_shard_optimizer(o.shard_optimizer));
  optim::AdamW<B> optimizer(model.parameters(), settings, ranks ? ranks->shards() : nullptr);
  data::Prefetch ahead(loader);
  train::Trainer<B> trainer(model, optimizer, ahead, train::language_model(model), trainer_config(o));
  if (ranks) trainer.train_with(*ranks);
  if (valid)  // all ranks evaluate on all of it: there may be less than they could share
    trainer.validate_on(*valid, std::min(o.evaluate_batches, valid->batches_per_epoch()));

  std::optional<RunObservers> observers;
  std::optional<Samples<B>> samples;
  TrainResult result(o);
  if (all.is_first()) {
    trainer.add_observer(result);
    observers.emplace("gpt train", o.out, o.quiet, o.length).add_to(trainer);
    if (tokenizer && o.sample_every > 0)
      trainer.add_observer(samples.emplace(model, *tokenizer, o.prompt, o.sample_every));
  }

  const bool resumed = o.resume && trainer.resume_latest();
  if (!o.quiet)
    fmt::print(stderr, "{} ({:.3g}M parameters), {} tokens of data, {} tokens per step, {}{}{}\n",
               describe(o.model), static_cast<double>(o.model.parameter_count()) / 1e6, loader.tokens(),
               o.batch * o.length * o.micro_batches * all.size(), backend.inner().describe(), all.describe(),
               resumed  ? fmt::format(", from step {}", trainer.step())
               : o.from ? fmt::format(", from {}", *o.from)
                        : "");
  if (!o.json) return fit(trainer, all, o.out, o.quiet);
  const train::Outcome outcome = fit_or_stop(trainer, o.out);
  result.print(trainer, outcome, loader.tokens(), backend.inner().describe());
  return exit_code(outcome, all);
}

}  // namespace ferrite::cli::gpt
