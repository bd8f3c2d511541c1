// The measurement of `ferrite gpt bench`, for any differentiating backend.
#pragma once

#include <chrono>
#include <optional>

#include "cli/gpt/bench.hpp"
#include "cli/input_files.hpp"
#include "ferrite/backend/record.hpp"
#include "ferrite/data/prefetch.hpp"
#include "ferrite/data/token_loader.hpp"
#include "ferrite/dist/data_parallel.hpp"
#include "ferrite/train/loading.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli::gpt {

/// What the steps read: the batches of token files, or one batch of random tokens in every step. The tensors
/// stay the same, so that a recorded step finds the next batch in them.
template <class B>
class BenchBatches {
 public:
  BenchBatches(B& backend, const BenchOptions& o, std::int64_t rows, Rng& rng) {
    if (o.data.empty()) {
      const Tensor<B> tokens = randint(backend, {rows, o.length + 1}, rng, 0, o.model.vocab);
      batch_ = {contiguous(slice(tokens, 1, 0, o.length)), contiguous(slice(tokens, 1, 1, o.length + 1))};
      return;
    }
    auto windows =
        data::TokenLoaderConfig{}.with_batch(rows, o.length).with_vocab(o.model.vocab).with_seed(o.seed);
    if (o.group) windows = windows.with_rank(o.group->rank(), o.group->size());
    if (!o.dtype.empty()) windows = windows.with_dtype(dtype_from_string(o.dtype));
    loader_.emplace(input_files(o.data), windows);
    ahead_.emplace(*loader_);
    batch_ = data::to_batch(backend, *ahead_->pull());
  }
  const Tensor<B>& ids() const { return batch_.x; }
  const Tensor<B>& targets() const { return batch_.y; }
  void next() {
    if (ahead_) train::Loading<B>().load_into(*ahead_->pull(), batch_);
  }

 private:
  std::optional<data::TokenLoader> loader_;
  std::optional<data::Prefetch> ahead_;
  data::Batch<B> batch_;
};

/// Steps as a Trainer runs them: recorded, where the backend can.
template <class B>
BenchResult measure_steps(B backend, const BenchOptions& o, std::int64_t batch) {
  using Clock = std::chrono::steady_clock;
  using Inner = typename B::Inner;
  Rng rng(o.seed);
  nn::Gpt<B> model(backend, o.model, rng);
  std::optional<dist::DataParallel<B>> parallel;
  if (o.group)
    parallel.emplace(model, *o.group, dist::DataParallelConfig{}.with_shard_optimizer(o.shard_optimizer));
  optim::AdamW<B> optimizer(model.parameters(),
                            optim::AdamWConfig{}
                                .with_lr(6e-4)
                                .with_betas(0.9, 0.95)
                                .with_weight_decay(0.1)
                                .with_no_decay(optim::biases_and_norms)
                                .with_clip_norm(1),
                            parallel ? parallel->shards() : nullptr);
  optimizer.keep_schedule_on_device();
  BenchBatches<B> batches(backend, o, batch, rng);
  Tensor<B> loss;
  const bool records = can_record(backend) && (!parallel || parallel->can_record());
  const auto step = [&] {
    loss = model.loss(batches.ids(), batches.targets());
    const auto release = BackwardConfig<Inner>{}.with_release();
    if (!parallel) return optimizer.step(backward(loss, release));
    Gradients<Inner> grads;
    parallel->backward(loss, grads, 1, release);
    optimizer.step(grads, records ? parallel->finish_recorded(grads) : parallel->finish(grads));
  };
  const auto seconds_of = [&](auto&& run, int steps) {
    const auto start = Clock::now();
    for (int i = 0; i < steps; ++i) run();
    backend.synchronize();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  BenchResult result{batch};
  result.warmup_seconds = seconds_of(step, 2);
  std::unique_ptr<RecordedStep> recorded;
  if (records) {
    loss = {};
    recorded = record(backend, step);
  }
  const auto run = [&] {
    batches.next();
    recorded ? recorded->replay() : step();
  };
  // Ranks measure as many steps as the first: all replay them.
  const auto as_first = [&](double value) {
    return parallel ? parallel->mean(value, o.group->rank() == 0 ? 1 : 0) : value;
  };
  const double once = as_first(seconds_of(run, 1));
  const int chunk = std::max(1, static_cast<int>(0.5 / once));
  while (as_first(result.seconds) < o.seconds) {
    result.seconds += seconds_of(run, chunk);
    result.steps += chunk;
  }
  result.loss = loss.template item<double>();
  result.peak_bytes = static_cast<double>(backend.memory_stats().peak);
  return result;
}

}  // namespace ferrite::cli::gpt
