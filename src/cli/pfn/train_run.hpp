// The training of `ferrite pfn train`, for any differentiating backend.
#pragma once

#include "cli/pfn/export.hpp"
#include "cli/pfn/table_scores.hpp"
#include "cli/pfn/train.hpp"
#include "cli/training_run.hpp"
#include "ferrite/dist/trainer_ranks.hpp"
#include "ferrite/models/pfn/file.hpp"
#include "ferrite/models/pfn/prior_batches.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/optim/muon.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli::pfn {

inline train::TrainerConfig trainer_config(const TrainOptions& o) {
  const auto schedule = optim::Schedule::cosine(o.lr, o.steps, o.lr / 50);
  auto config = train::TrainerConfig{}
                    .with_steps(o.steps)
                    .with_schedule(o.warmup > 0 ? schedule.with_warmup(o.warmup) : schedule)
                    .with_report_every(o.report_every)
                    .with_evaluate_every(o.evaluate_every)
                    .with_checkpoints(o.out, o.checkpoint_every)
                    .with_average(o.average)
                    .with_setting("update", update_setting(o.weight_decay, o.clip))
                    .with_setting(ferrite::pfn::setting, o.model.to_json());
  return o.recorded == 0 ? config
                         : config.with_capture(train::Capture::if_possible)
                               .with_recorded_kinds(static_cast<int>(o.recorded));
}

template <class B>
std::unique_ptr<optim::Optimizer<B>> optimizer_of(const TrainOptions& o, nn::Pfn<B>& model,
                                                  optim::Shards<typename B::Inner>* shards) {
  const auto usual = [&](const auto& config) {
    return config.with_lr(o.lr)
        .with_betas(0.9, 0.98)
        .with_weight_decay(o.weight_decay)
        .with_no_decay(optim::biases_and_norms)
        .with_clip_norm(o.clip);
  };
  if (o.optimizer == "adamw")
    return std::make_unique<optim::AdamW<B>>(model.parameters(), usual(optim::AdamWConfig{}), shards);
  auto muon = optim::MuonConfig{}.with_scale(optim::MuonScale::adam).with_matrices(optim::under("blocks"));
  if constexpr (requires(typename B::Inner & b) { b.lowered_dtype(); }) muon = muon.with_dtype(DType::bf16);
  return std::make_unique<optim::Muon<B>>(model.parameters(), usual(muon));
}

template <class B>
int train_on(B backend, TrainingRanks& all, const TrainOptions& o) {
  Rng rng(o.seed);
  nn::Pfn<B> model(backend, o.model, rng);
  std::optional<dist::TrainerRanks<B>> ranks;
  if (all.size() > 1)
    ranks.emplace(model, all.group(), dist::DataParallelConfig{}.with_shard_optimizer(o.shard_optimizer));
  const auto optimizer = optimizer_of(o, model, ranks ? ranks->shards() : nullptr);
  ferrite::pfn::PriorBatches<B> batches(o.course, 0, all.rank());
  data::Generated held_out = batches.held_out(all.rank(), all.size());
  train::Trainer<B> trainer(model, *optimizer, batches, ferrite::pfn::table_model(model), trainer_config(o));
  trainer.load_by(batches);
  trainer.validate_on(held_out, o.evaluate_batches);
  if (ranks) trainer.train_with(*ranks);

  std::optional<RunObservers> observers;
  std::optional<TableScores> scores;
  if (all.is_first()) observers.emplace("pfn train", o.out, o.quiet).add_to(trainer);
  if (all.is_first() && !o.tables.empty()) {
    const auto predictor = ferrite::pfn::PredictorConfig{}
                               .with_backend(o.backend)
                               .with_precision(ferrite::pfn::precision_from_string(o.precision))
                               .with_members(1);
    trainer.add_observer(scores.emplace(o.tables, o.reading, o.model.task, predictor, observers->all()));
    if (o.evaluate_minutes > 0) {
      const auto write = [&](const std::filesystem::path& path) {
        train::write_weights(path, trainer.weights(), {{ferrite::pfn::setting, o.model.to_json()}});
      };
      scores->also_every(TableScores::Minutes(o.evaluate_minutes), trainer,
                         std::filesystem::path(o.out) / "scored.safetensors", write);
    }
  }

  const bool resumed = o.resume && trainer.resume_latest();
  std::int64_t parameters = 0;
  for (const auto& p : model.parameters()) parameters += p.tensor.numel();
  if (!o.quiet)
    fmt::print(stderr, "{:.2f}M parameters, batches of about {} cells, {}{}{}\n",
               static_cast<double>(parameters) / 1e6, o.course.cells, backend.inner().describe(),
               all.describe(), resumed ? fmt::format(", from step {}", trainer.step()) : "");
  const int code = fit(trainer, all, o.out, o.quiet);
  const bool whole = trainer.step() == o.steps;  // not if it was interrupted
  if (whole && all.is_first() && !o.export_to.empty()) {
    const auto newest = train::CheckpointFolder(o.out).latest();
    const std::string line = export_weights(newest.value(), o.export_to, DType::bf16);
    if (!o.quiet) fmt::print("{}\n", line);
  }
  return code;
}

}  // namespace ferrite::cli::pfn
