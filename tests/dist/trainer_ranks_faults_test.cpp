// Trainers on several ranks of which one fails or differs.
#include <atomic>
#include <map>
#include <mutex>

#include "dist/rank_run.hpp"

namespace ferrite::testing {
namespace {

/// The default of NonFinite. It throws in the midst of a step, while the others wait for its gradients.
TEST(TrainerRanks, ABadLossOfOneRankEndsAll) {
  for (const bool sharded : {false, true}) {
    std::mutex mutex;
    std::map<int, std::string> errors;
    on_ranks(3, [&](Handle& group) {
      const int rank = group->rank();
      try {
        RankRun run(*group, ten_steps(), sharded);
        std::int64_t call = 0;
        train::Trainer<D> trainer(
            run.net, run.optimizer, run.loader,
            [&](const data::Batch<D>& batch) {
              const bool is_bad = rank == 1 && ++call >= 3;
              const auto logits = run.net.forward(is_bad ? batch.x * std::nan("") : batch.x);
              return train::Prediction<D>{cross_entropy(logits, batch.y), logits};
            },
            ten_steps());
        trainer.train_with(run.ranks);
        trainer.fit();
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        errors[rank] = error.what();
      }
      group.reset();  // as at the end of a process
    });
    ASSERT_EQ(errors.size(), 3u) << sharded;
    EXPECT_NE(errors[1].find("[trainer] step 3: "), std::string::npos) << errors[1];
    for (const int other : {0, 2})
      EXPECT_NE(errors[other].find("rank 1 is gone"), std::string::npos) << errors[other];
  }
}

/// All ranks take part in saving a sharded optimiser, and so must know of the error.
TEST(TrainerRanks, AnEvaluationThatFailsOnOneRankLosesNothing) {
  struct Bad final : train::Metric<D> {
    bool fails;
    explicit Bad(bool on_this_rank) : fails(on_this_rank) {}
    std::string name() const override { return "bad"; }
    void reset() override {}
    void add(const train::Prediction<D>&, const data::Batch<D>&) override {
      if (fails) throw std::runtime_error("the metric failed");
    }
    double value() const override { return 0; }
  };
  const ScratchFolder folder;
  std::mutex mutex;
  std::vector<std::string> errors;
  on_ranks(2, [&](Handle& group) {
    RankRun run(*group, ten_steps().with_checkpoints((folder / "run").string(), 0), true);
    run.trainer.add_metric(std::make_unique<Bad>(group->rank() == 1));
    run.trainer.validate_on(points(32, 6));
    try {
      run.trainer.fit();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      errors.push_back(error.what());
    }
  });
  std::ranges::sort(errors);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].find("failed on another rank"), std::string::npos) << errors[0];
  EXPECT_EQ(errors[1], "the metric failed");
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "step-00000010.safetensors"));
}

TEST(TrainerRanks, ABadLossOfOneRankIsSkippedByAll) {
  std::atomic<int> skipped = 0;
  std::mutex mutex;
  std::vector<NamedTensors> states;
  on_ranks(2, [&](Handle& group) {
    const bool sharded = true;  // then a rank sees its part of the gradients alone
    RankRun run(*group, ten_steps().with_non_finite(train::NonFinite::skip), sharded);
    std::int64_t call = 0;
    train::Trainer<D> trainer(
        run.net, run.optimizer, run.loader,
        [&](const data::Batch<D>& batch) {
          const bool is_bad = group->rank() == 1 && ++call == 3;
          const auto logits = run.net.forward(is_bad ? batch.x * std::nan("") : batch.x);
          return train::Prediction<D>{cross_entropy(logits, batch.y), logits};
        },
        ten_steps().with_non_finite(train::NonFinite::skip));
    trainer.train_with(run.ranks);
    trainer.add_observer(run.seen);
    trainer.fit();
    for (const std::string& notice : run.seen.notices)
      skipped += notice.find("the batch is skipped") != std::string::npos;
    const std::lock_guard lock(mutex);
    states.push_back(run.net.state());
    if (group->rank() == 0) {
      EXPECT_TRUE(std::ranges::any_of(run.seen.notices, [](const std::string& notice) {
        return notice.find("the loss of another rank is not finite") != std::string::npos;
      }));
    }
  });
  EXPECT_EQ(skipped, 2);
  EXPECT_TRUE(std::ranges::equal(states[0].at("head.weight").bytes(), states[1].at("head.weight").bytes()));
}

TEST(TrainerRanks, RanksWithOtherOptionsAreRefused) {
  std::atomic<int> refused = 0;
  on_ranks(2, [&](Handle& group) {
    RankRun run(*group, ten_steps().with_micro_batches(1 + group->rank()));
    try {
      run.trainer.fit();
    } catch (const dist::DistError& error) {
      refused += std::string(error.what()).find("rank 1 has micro_batches \"2\"") != std::string::npos;
    }
  });
  EXPECT_EQ(refused, 2);
}

TEST(TrainerRanks, RanksAtDifferentStepsAreRefused) {
  std::atomic<int> refused = 0;
  on_ranks(2, [&](Handle& group) {
    RankRun run(*group, ten_steps());
    const ScratchFolder folder;
    run.trainer.save(folder / "a.safetensors");
    train::Checkpoint checkpoint = train::read_checkpoint(folder / "a.safetensors");
    checkpoint.step = 4;
    train::write_checkpoint(folder / "a.safetensors", checkpoint);
    if (group->rank() == 1) run.trainer.resume(folder / "a.safetensors");
    try {
      run.trainer.fit();
    } catch (const dist::DistError& error) {
      refused += std::string(error.what()).find("rank 1 has step 4 of 10, rank 0 has step 0 of 10") !=
                 std::string::npos;
    }
  });
  EXPECT_EQ(refused, 2);
}

}  // namespace
}  // namespace ferrite::testing
