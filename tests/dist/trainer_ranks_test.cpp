// Trainers on the ranks of a group: they train one model, resume in any number, and decide together.
#include "ferrite/dist/trainer_ranks.hpp"

#include <atomic>
#include <mutex>

#include "dist/rank_run.hpp"

namespace ferrite::testing {
namespace {

TEST(TrainerRanks, AllHaveTheSameWeightsAndLosses) {
  std::mutex mutex;
  std::vector<NamedTensors> states;
  std::vector<double> losses;
  on_ranks(3, [&](Handle& group) {
    RankRun run(*group, ten_steps());
    EXPECT_EQ(run.trainer.fit(), train::Outcome::finished);
    run.ranks.broadcast_buffers();
    const std::lock_guard lock(mutex);
    states.push_back(run.net.state());
    losses.push_back(run.seen.progress.back().loss);
  });
  ASSERT_EQ(states.size(), 3u);
  EXPECT_TRUE(same_bits(states[0], states[1]));
  EXPECT_TRUE(same_bits(states[0], states[2]));
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_LT(losses[0], 0.75);
}

/// Without dropout and running statistics, two ranks with batches of 4 are one process with two
/// micro-batches.
TEST(TrainerRanks, TrainAsOneProcessWithAsManyMicroBatches) {
  const auto net_of = [](D& backend, std::uint64_t seed) {
    Rng rng(seed);
    return nn::Linear<D>(backend, {4, 2}, rng);
  };
  const auto train = [&](nn::Linear<D>& net, data::LoaderConfig loading, std::int64_t micro,
                         dist::Group* group) {
    optim::AdamW<D> optimizer(net.parameters(), optim::AdamWConfig{}.with_lr(0.01));
    data::DataLoader loader(points(64, 5).with_row_shape({4}), loading.with_batch_size(4));
    train::Trainer<D> trainer(
        net, optimizer, loader,
        [&](const data::Batch<D>& batch) {
          const auto logits = net.forward(batch.x);
          return train::Prediction<D>{cross_entropy(logits, batch.y), logits};
        },
        ten_steps().with_micro_batches(micro));
    std::optional<dist::TrainerRanks<D>> ranks;
    if (group) trainer.train_with(ranks.emplace(net, *group));
    trainer.fit();
    return net.weight.to_vector();
  };
  D one;
  auto net = net_of(one, 1);
  const std::vector<float> expected = train(net, {}, 4, nullptr);
  on_ranks(2, [&](Handle& group) {
    D backend;
    auto own = net_of(backend, 1 + static_cast<std::uint64_t>(group->rank()));
    const auto weights = train(own, data::LoaderConfig{}.with_rank(group->rank(), 2), 2, group.get());
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 2e-6);
  });
}

TEST(TrainerRanks, ResumeToTheBitAndInAnotherNumber) {
  const ScratchFolder folder;
  const auto config = ten_steps().with_checkpoints((folder / "run").string(), 4);
  std::mutex mutex;
  std::vector<NamedTensors> whole, resumed;
  std::atomic<int> files = 0;
  on_ranks(2, [&](Handle& group) {
    RankRun run(*group, ten_steps());
    run.trainer.fit();
    const std::lock_guard lock(mutex);
    whole.push_back(run.net.state());
  });
  on_ranks(2, [&](Handle& group) {
    RankRun run(*group, config);
    run.trainer.advance(6);
    files += static_cast<int>(run.seen.checkpoints.size());
  });
  EXPECT_EQ(files, 1);  // rank 0 alone
  on_ranks(2, [&](Handle& group) {
    RankRun run(*group, config);
    EXPECT_TRUE(run.trainer.resume_latest());
    EXPECT_EQ(run.trainer.step(), 4);
    group->barrier();
    run.trainer.fit();
    const std::lock_guard lock(mutex);
    resumed.push_back(run.net.state());
  });
  for (const NamedTensors* state : {&whole[1], &resumed[0], &resumed[1]}) {
    NamedTensors a = whole[0], b = *state;
    std::erase_if(a, [](const auto& item) { return item.first.starts_with("norm.running"); });
    std::erase_if(b, [](const auto& item) { return item.first.starts_with("norm.running"); });
    EXPECT_TRUE(same_bits(a, b));  // running statistics are each rank's own
  }
  for (const int ranks : {1, 4}) {
    on_ranks(ranks, [&](Handle& group) {
      RankRun run(*group, warm_cosine(12).with_report_every(5));
      run.trainer.resume(folder / "run" / "step-00000010.safetensors");
      EXPECT_EQ(run.loader.position().epoch, 2);  // 20 of 8 batches an epoch
      run.trainer.fit();
      EXPECT_EQ(run.trainer.step(), 12);
    });
  }
}

/// Each rank has a part of the state; files have all of it, and any number of ranks reads them.
TEST(TrainerRanks, ShardedOptimisersSaveAndResumeAsWholeOnes) {
  const ScratchFolder folder;
  const auto config = [&](bool sharded) {
    return ten_steps().with_checkpoints((folder / (sharded ? "sharded" : "whole")).string(), 4);
  };
  for (const bool sharded : {false, true})
    on_ranks(3, [&](Handle& group) {
      RankRun run(*group, config(sharded), sharded);
      run.trainer.fit();
      EXPECT_EQ(run.seen.checkpoints.size(), group->rank() == 0 ? 3u : 0u);
    });
  const auto read = [&](const std::string& run, int step) {
    return train::read_checkpoint(folder / run / ("step-0000000" + std::to_string(step) + ".safetensors"));
  };
  EXPECT_TRUE(same_bits(read("sharded", 8).model, read("whole", 8).model));
  EXPECT_TRUE(same_bits(read("sharded", 8).optimizer, read("whole", 8).optimizer));
  // From one kind to the other, and with another number of ranks.
  std::mutex mutex;
  std::vector<NamedTensors> states;
  for (const int ranks : {3, 2, 1})
    for (const bool sharded : {false, true})
      on_ranks(ranks, [&](Handle& group) {
        RankRun run(*group, ten_steps(), sharded);
        run.trainer.resume(folder / (sharded ? "whole" : "sharded") / "step-00000008.safetensors");
        run.trainer.fit();
        if (group->rank() > 0) return;
        const std::lock_guard lock(mutex);
        states.push_back(run.net.state());
      });
  for (std::size_t i = 0; i < states.size(); i += 2) EXPECT_TRUE(same_bits(states[i], states[i + 1]));
}

TEST(TrainerRanks, WhatShardedTrainersMustHaveInCommonIsSaid) {
  const ScratchFolder folder;
  std::mutex mutex;
  std::vector<std::string> errors;
  const auto error_of_fit = [&](train::Trainer<D>& trainer) {
    try {
      trainer.fit();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      errors.push_back(error.what());
    }
  };
  on_ranks(2, [&](Handle& group) {  // only one saves
    const auto config = ten_steps();
    RankRun run(*group, group->rank() == 0 ? config.with_checkpoints((folder / "run").string(), 4) : config,
                true);
    error_of_fit(run.trainer);
  });
  on_ranks(2, [&](Handle& group) {  // only one finds a file
    RankRun run(*group, ten_steps(), true);
    run.trainer.advance(2);
    run.trainer.save(folder / "two.safetensors");
    group->barrier();
    RankRun next(*group, ten_steps(), true);
    if (group->rank() == 0) next.trainer.resume(folder / "two.safetensors");
    error_of_fit(next.trainer);
  });
  on_ranks(1, [&](Handle& group) {  // the trainer was not told
    RankRun run(*group, ten_steps(), true);
    train::Trainer<D> alone(
        run.net, run.optimizer, run.loader,
        [&](const data::Batch<D>& batch) {
          const auto logits = run.net.forward(batch.x);
          return train::Prediction<D>{cross_entropy(logits, batch.y), logits};
        },
        ten_steps());
    error_of_fit(alone);
  });
  ASSERT_EQ(errors.size(), 5u);
  for (const int i : {0, 1})
    EXPECT_NE(errors[static_cast<std::size_t>(i)].find("rank 1 has checkpoints nowhere"), std::string::npos)
        << errors[static_cast<std::size_t>(i)];
  for (const int i : {2, 3})
    EXPECT_NE(errors[static_cast<std::size_t>(i)].find("rank 1 has step 0 of 10, rank 0 has step 2 of 10"),
              std::string::npos)
        << errors[static_cast<std::size_t>(i)];
  EXPECT_NE(errors[4].find("call train_with(ranks)"), std::string::npos) << errors[4];
}

TEST(TrainerRanks, OneRequestStopsAll) {
  std::atomic<int> interrupted = 0;
  std::atomic<std::int64_t> steps = 0;
  on_ranks(3, [&](Handle& group) {
    RankRun run(*group, warm_cosine(1000).with_report_every(1));
    struct Stopper final : train::Observer {
      train::TrainerBase* trainer = nullptr;
      void on_progress(const train::Progress& p) override {
        if (p.step == 3) trainer->request_stop();
      }
    } stopper;
    stopper.trainer = &run.trainer;
    if (group->rank() == 2) run.trainer.add_observer(stopper);
    interrupted += run.trainer.fit() == train::Outcome::interrupted;
    steps += run.trainer.step();
  });
  EXPECT_EQ(interrupted, 3);
  EXPECT_EQ(steps, 9);
}

TEST(TrainerRanks, AveragesAreThoseOfTheCommonWeights) {
  const ScratchFolder folder;
  std::mutex mutex;
  std::vector<float> averages;
  on_ranks(2, [&](Handle& group) {
    D backend;
    auto net = points_net(backend, 1 + static_cast<std::uint64_t>(group->rank()), 0);
    optim::AdamW<D> optimizer(net.parameters());
    data::DataLoader loader(points(64, 5), data::LoaderConfig{}.with_rank(group->rank(), 2));
    train::Trainer<D> trainer(
        net, optimizer, loader,
        [&](const data::Batch<D>& batch) {
          const auto logits = net.forward(batch.x);
          return train::Prediction<D>{cross_entropy(logits, batch.y), logits};
        },
        ten_steps().with_average(0.999, 1));
    dist::TrainerRanks<D> ranks(net, *group);  // after the trainer has begun its average
    trainer.train_with(ranks);
    trainer.fit();
    const auto path = folder / std::to_string(group->rank());
    trainer.save(path);
    const std::lock_guard lock(mutex);
    averages.push_back(train::read_checkpoint(path).average.at("head.weight").as<float>()[0]);
  });
  EXPECT_EQ(averages[0], averages[1]);
}

}  // namespace
}  // namespace ferrite::testing
