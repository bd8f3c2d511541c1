// Ranks on a GPU. NCCL refuses two ranks on one GPU: its group is a world of one here, recorded and not.
// Several ranks share the GPU as threads, through the host.
#include "ferrite/dist/nccl.hpp"

#include <cstdlib>

#include "dist/data_parallel_checks.hpp"
#include "dist/on_ranks.hpp"
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/dist/trainer_ranks.hpp"
#include "ferrite/dist/world.hpp"
#include "train/token_batch.hpp"
#include "train/train_test.hpp"

namespace ferrite::testing {
namespace {

using B = Autodiff<Cuda>;
using dist::DataParallel;
using dist::DataParallelConfig;

class CudaRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

class Nccl : public CudaRanks {
 protected:
  void SetUp() override {
    if (!dist::nccl_unavailable_reason().empty()) GTEST_SKIP() << dist::nccl_unavailable_reason();
  }
  static std::unique_ptr<dist::Group> alone() {
    return std::make_unique<dist::NcclGroup>(std::move(dist::InProcessGroup::create(1)[0]), 0);
  }
};

void check_world_of_one(dist::Group& group, DType dtype) {
  Cuda cuda;
  const Tensor<Cuda> x = cast(reshape(arange(cuda, 30), {6, 5}), dtype);
  const auto expect = [&](const Tensor<Cuda>& got, const Tensor<Cuda>& expected) {
    EXPECT_TRUE(std::ranges::equal(to_host(got).bytes(), to_host(expected).bytes())) << to_string(dtype);
  };
  expect(dist::all_gather(group, x), x);
  expect(dist::broadcast(group, x), x);
  if (is_storage(dtype)) return;
  const Tensor<Cuda> turned = transpose(x, 0, 1);
  expect(dist::all_reduce(group, x, dist::ReduceOp::max), x);
  expect(dist::all_reduce(group, turned, dist::ReduceOp::max), turned);
  expect(dist::reduce_scatter(group, x, dist::ReduceOp::min), x);
}

TEST_F(Nccl, AWorldOfOneGivesBackWhatItGets) {
  const auto group = alone();
  EXPECT_EQ(group->describe(), "NCCL, rank 0 of 1, cuda:0");
  EXPECT_TRUE(group->is_queued({DeviceKind::cuda, 0}));
  EXPECT_FALSE(group->is_queued({DeviceKind::cpu, 0}));
  for (const DType dtype : all_dtypes) check_world_of_one(*group, dtype);
  group->barrier();
  Cuda cuda;
  EXPECT_EQ(dist::all_reduce(*group, empty(cuda, {0, 3})).numel(), 0);
  const Tensor<Cuda> mean = dist::all_reduce(*group, full(cuda, {4}, 3), dist::ReduceOp::mean);
  EXPECT_EQ(mean.to_vector(), std::vector<float>(4, 3));
  EXPECT_THROW(dist::NcclGroup(std::move(dist::InProcessGroup::create(1)[0]), 99), DeviceError);
}

TEST_F(Nccl, FindsItsRanksByAnAddressAlone) {
  dist::NcclGroup group(dist::Rendezvous{0, 1, "127.0.0.1:29533"}, 0);
  EXPECT_EQ(std::getenv("NCCL_COMM_ID"), nullptr) << "the next group would take the same address";
  check_world_of_one(group, DType::f32);
  group.barrier();
  EXPECT_EQ(dist::mean(group, 7), 7) << "host arrays go through the GPU";
  Cpu cpu;
  EXPECT_EQ(dist::broadcast(group, full(cpu, {3}, 2)).to_vector(), std::vector<float>(3, 2));
  EXPECT_EQ(dist::all_gather(group, full(cpu, {3}, 2)).to_vector(), std::vector<float>(3, 2));
  EXPECT_THROW(dist::NcclGroup(dist::Rendezvous{1, 1, "127.0.0.1:29533"}, 0), ValueError);
}

/// Also by torchrun --no-python.
TEST_F(Nccl, IsTheWorldOfAGpu) {
  const auto group = dist::world({DeviceKind::cuda, 0});
  EXPECT_NE(dynamic_cast<dist::NcclGroup*>(group.get()), nullptr) << group->describe();
  EXPECT_EQ(dist::host_reason(*group, {DeviceKind::cuda, 0}), "");
  EXPECT_EQ(dist::mean(*group, 7), 7);
}

/// Steps that are not recorded, with and without the group.
TEST_F(Nccl, TrainsAsOneProcess) {
  const auto group = alone();
  for (const bool sharded : {false, true})
    for (const std::int64_t bytes : {1, 300, 1 << 20}) {
      const auto config = DataParallelConfig{}.with_bucket_bytes(bytes).with_shard_optimizer(sharded);
      check_lesson<B>(*group, {.micro_batches = 2}, config);
      check_lesson<B>(*group, {}, config.with_overlap(false));
    }
}

struct RankGpt {
  B backend;
  Rng rng{7};
  nn::Gpt<B> model;
  std::unique_ptr<dist::TrainerRanks<B>> ranks;
  optim::AdamW<B> optimizer;
  data::Generated source;
  Recorder recorder;
  train::Trainer<B> trainer;

  RankGpt(dist::Group* group, train::Capture capture, bool sharded = false)
      : model(backend,
              nn::GptConfig{}.with_vocab(61).with_context(32).with_layers(2).with_heads(2).with_dim(64), rng),
        ranks(group ? std::make_unique<dist::TrainerRanks<B>>(
                          model, *group,
                          DataParallelConfig{}.with_bucket_bytes(40'000).with_shard_optimizer(sharded))
                    : nullptr),
        optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(0.01).with_clip_norm(0.5),
                  ranks ? ranks->shards() : nullptr),
        source("texts", [](std::int64_t number) { return std::optional(token_batch(number, 4, 32)); }),
        trainer(model, optimizer, source, train::language_model(model),
                train::TrainerConfig{}.with_steps(12).with_report_every(3).with_micro_batches(2).with_capture(
                    capture)) {
    trainer.add_observer(recorder);
    if (ranks) trainer.train_with(*ranks);
    trainer.fit();
  }
};

TEST_F(Nccl, RecordedStepsHaveTheReductionInside) {
  const auto group = alone();
  RankGpt eager(nullptr, train::Capture::never);
  for (const bool sharded : {false, true})
    for (const auto capture : {train::Capture::never, train::Capture::required}) {
      RankGpt run(group.get(), capture, sharded);
      EXPECT_TRUE(same_bits(eager.model.state(), run.model.state())) << sharded;
      EXPECT_TRUE(same_bits(eager.optimizer.state(), run.optimizer.state())) << sharded;
      for (const std::string& notice : run.recorder.notices) ADD_FAILURE() << notice;
      ASSERT_EQ(run.recorder.progress.size(), eager.recorder.progress.size());
      EXPECT_EQ(run.recorder.progress.back().loss, eager.recorder.progress.back().loss);
      EXPECT_EQ(run.recorder.progress.back().gradient_norm, eager.recorder.progress.back().gradient_norm);
    }
}

/// The ranks use one GPU from several threads, and sums go through the host.
TEST_F(CudaRanks, ThreadsThatShareAGpuTrainAsOneProcess) {
  for (const int ranks : {2, 3})
    on_ranks(ranks, [](Handle& group) {
      for (const bool sharded : {false, true}) {
        const auto config = DataParallelConfig{}.with_bucket_bytes(200).with_shard_optimizer(sharded);
        check_lesson<B>(*group, {.steps = 10, .micro_batches = 2, .gated = true}, config);
      }
    });
}

TEST_F(CudaRanks, StepsOverAGroupOfTheHostAreNotRecorded) {
  on_ranks(2, [](Handle& group) {
    B backend;
    SmallNet<B> net(backend, 1);
    DataParallel parallel(net, *group);
    EXPECT_FALSE(parallel.can_record());
    Gradients<Cuda> grads;
    parallel.backward(Lesson{}.loss(net, 0, 0, 0), grads);
    EXPECT_THROW(parallel.finish_recorded(grads), ValueError);
    parallel.finish(grads);
  });
}

}  // namespace
}  // namespace ferrite::testing
