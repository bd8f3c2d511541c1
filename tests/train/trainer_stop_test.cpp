// Runs that are interrupted, by a request or by an accident; evaluation on a source.
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::expect_error;
using testing::points;
using testing::PointsRun;
using testing::Recorder;
using testing::same_bits;
using testing::ScratchFolder;
using testing::warm_cosine;

class Interrupted : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, Interrupted, ::testing::Values("reference", "cpu"), testing::name_of);

/// Asks a trainer to stop at a step.
struct Stopper final : Observer {
  TrainerBase& trainer;
  std::int64_t at;
  Stopper(TrainerBase& t, std::int64_t step) : trainer(t), at(step) {}
  void on_progress(const Progress& progress) override {
    if (progress.step == at) trainer.request_stop();
  }
};

TEST_P(Interrupted, ARequestSavesTheRunWhichGoesOnBitForBit) {
  const ScratchFolder folder;
  const auto config = warm_cosine(12).with_micro_batches(2).with_report_every(1);
  PointsRun whole(GetParam(), config);
  whole.trainer.fit();

  const auto saving = config.with_checkpoints(folder / "run", 0);
  PointsRun first(GetParam(), saving);
  Recorder recorder;
  Stopper stopper(first.trainer, 5);
  first.trainer.add_observer(recorder);
  first.trainer.add_observer(stopper);
  first.trainer.validate_on(points(20, 3));
  EXPECT_EQ(first.trainer.fit(), Outcome::interrupted);
  EXPECT_EQ(first.trainer.step(), 5);
  EXPECT_TRUE(recorder.evaluations.empty());
  EXPECT_EQ(recorder.finished, 1);
  ASSERT_EQ(recorder.notices.size(), 1u);
  EXPECT_NE(recorder.notices[0].find("stopped at step 5, as requested"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "step-00000005.safetensors"));

  PointsRun second(GetParam(), saving);
  ASSERT_TRUE(second.trainer.resume_latest());
  EXPECT_EQ(second.trainer.fit(), Outcome::finished);
  EXPECT_TRUE(same_bits(second.net.state(), whole.net.state()));
  EXPECT_TRUE(same_bits(second.optimizer.state(), whole.optimizer.state()));
}

TEST_P(Interrupted, WhatIsTrainedSinceTheLastReportIsReported) {
  PointsRun run(GetParam(), warm_cosine(30).with_report_every(10));
  run.trainer.advance(3);
  Recorder recorder;
  run.trainer.add_observer(recorder);
  run.trainer.request_stop();
  EXPECT_EQ(run.trainer.advance(5), Outcome::interrupted);
  EXPECT_EQ(run.trainer.step(), 3);
  EXPECT_EQ(run.trainer.advance(5), Outcome::finished);  // the request is served
  EXPECT_EQ(run.trainer.step(), 8);
}

/// A loader that breaks at its n-th batch.
struct Breaking final : data::BatchSource {
  data::DataLoader& loader;
  int left;
  Breaking(data::DataLoader& l, int batches) : loader(l), left(batches) {}
  std::optional<data::HostBatch> pull() override {
    if (left-- == 0) throw IoError("[disk] gone");
    return loader.pull();
  }
  std::string describe() const override { return loader.describe(); }
  data::LoaderPosition position() const override { return loader.position(); }
  bool can_seek() const override { return true; }
  void seek(data::LoaderPosition position) override { loader.seek(position); }
};

TEST_P(Interrupted, AnAccidentInTheMiddleOfAnAccumulationCostsOnlyTheStepsSinceTheCheckpoint) {
  const ScratchFolder folder;
  const auto config = warm_cosine(10).with_micro_batches(4);
  PointsRun whole(GetParam(), config);
  whole.trainer.fit();

  const auto saving = config.with_checkpoints(folder / "run", 2);
  PointsRun first(GetParam(), saving);
  Breaking source(first.loader, 4 * 5 + 2);  // in step 6, after two of its four batches
  Trainer<PointsRun::B> trainer(first.net, first.optimizer, source, first.step(), saving);
  trainer.add_rng("noise", first.noise);
  EXPECT_THROW(trainer.fit(), IoError);

  PointsRun second(GetParam(), saving);
  ASSERT_TRUE(second.trainer.resume_latest());
  EXPECT_EQ(second.trainer.step(), 4);
  second.trainer.fit();
  EXPECT_TRUE(same_bits(second.net.state(), whole.net.state()));
  EXPECT_TRUE(same_bits(second.optimizer.state(), whole.optimizer.state()));
}

TEST_P(Interrupted, ASourceIsEvaluatedOnTheSameBatchesEveryTime) {
  PointsRun run(GetParam(), warm_cosine(4).with_evaluate_every(2));
  data::DataLoader valid(points(40, 3), data::LoaderConfig{}.with_batch_size(8));
  Recorder recorder;
  run.trainer.add_observer(recorder);
  static_cast<void>(valid.pull());  // evaluations begin where it stands now
  run.trainer.validate_on(valid, 2);
  run.trainer.fit();
  EXPECT_EQ(recorder.evaluations.size(), 2u);
  EXPECT_EQ(valid.position(), (data::LoaderPosition{0, 3}));
  valid.seek({0, 1});
  EXPECT_EQ(run.trainer.evaluate(valid, 2)["loss"], recorder.evaluations[1].second["loss"]);
  expect_error<ValueError>([&] { run.trainer.validate_on(valid, 0); }, {"[trainer] evaluation on 0 batches"});
}

TEST_P(Interrupted, ASourceThatEndsIsEvaluatedOnWhatItHas) {
  PointsRun run(GetParam(), warm_cosine(4));
  data::DataLoader loader(points(40, 3), data::LoaderConfig{}.with_batch_size(8));
  data::Generated two("two batches", [&](std::int64_t number) {
    return number < 2 ? std::optional(loader.next()) : std::nullopt;
  });
  const double both = run.trainer.evaluate(two, 5)["loss"];
  loader.seek({0, 0});
  // The noise of the step function begins anew for every evaluation.
  EXPECT_EQ(run.trainer.evaluate(loader, 2)["loss"], both);
}

}  // namespace
}  // namespace ferrite::train
