// The measurement of `ferrite gpt bench`, for any differentiating backend.
#pragma once

#include <chrono>

#include "cli/gpt/bench.hpp"
#include "ferrite/backend/record.hpp"
#include "ferrite/dist/data_parallel.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli::gpt {

/// Steps on random tokens, as a Trainer runs them: recorded, where the backend can.
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
  const Tensor<B> tokens = randint(backend, {batch, o.length + 1}, rng, 0, o.model.vocab);
  const Tensor<B> ids = contiguous(slice(tokens, 1, 0, o.length)),
                  targets = contiguous(slice(tokens, 1, 1, o.length + 1));
  Tensor<B> loss;
  const bool records = can_record(backend) && (!parallel || parallel->can_record());
  const auto step = [&] {
    loss = model.loss(ids, targets);
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
  const auto run = [&] { recorded ? recorded->replay() : step(); };
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
