// A trainer on a rank, for tests of several.
#pragma once

#include "dist/on_ranks.hpp"
#include "ferrite/dist/trainer_ranks.hpp"
#include "train/train_test.hpp"

namespace ferrite::testing {

using D = Autodiff<Cpu>;

/// What one rank has. Ranks have other weights at first and other dropouts.
struct RankRun {
  D backend;
  nn::Sequential<D> net;
  dist::TrainerRanks<D> ranks;
  optim::AdamW<D> optimizer;
  data::DataLoader loader;
  Recorder seen;
  train::Trainer<D> trainer;

  RankRun(dist::Group& group, const train::TrainerConfig& config, bool sharded = false)
      : net(points_net(backend, 1 + static_cast<std::uint64_t>(group.rank()), 0.1)),
        ranks(net, group, dist::DataParallelConfig{}.with_shard_optimizer(sharded)),
        optimizer(net.parameters(), optim::AdamWConfig{}.with_lr(0.01).with_clip_norm(1), ranks.shards()),
        loader(points(64, 5), data::LoaderConfig{}.with_batch_size(8).with_rank(group.rank(), group.size())),
        trainer(
            net, optimizer, loader,
            [this](const data::Batch<D>& batch) {
              const auto logits = net.forward(batch.x);
              return train::Prediction<D>{cross_entropy(logits, batch.y), logits};
            },
            config) {
    trainer.train_with(ranks);
    trainer.add_observer(seen);
  }
};

inline train::TrainerConfig ten_steps() { return warm_cosine(10).with_report_every(5); }

}  // namespace ferrite::testing
