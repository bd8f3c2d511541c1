// Training: it learns, it goes on bit for bit after an interruption, it leaks nothing.
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::cross_entropy;
using testing::expect_error;
using testing::points;
using testing::points_net;
using testing::PointsRun;
using testing::Recorder;
using testing::same_bits;
using testing::ScratchFolder;
using testing::warm_cosine;

class Training : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, Training, ::testing::Values("reference", "cpu"), testing::name_of);

TEST_P(Training, ReachesHighAccuracyAndReportsOnTheWay) {
  auto net = points_net(backend, 1, 0.0);
  optim::AdamW<B> optimizer(net.parameters());
  data::DataLoader loader(points(200, 1), data::LoaderConfig{}.with_batch_size(20));
  Trainer<B> trainer(net, optimizer, loader, supervised(net, cross_entropy),
                     warm_cosine(40).with_report_every(15).with_evaluate_every(20));
  Recorder recorder;
  trainer.add_observer(recorder);
  trainer.add_metric(std::make_unique<Accuracy<B>>());
  trainer.validate_on(points(100, 2));
  trainer.fit();
  EXPECT_EQ(trainer.step(), 40);
  ASSERT_EQ(recorder.progress.size(), 3u);  // after 15, 30 and 40 steps
  EXPECT_EQ(recorder.progress[1].step, 30);
  EXPECT_EQ(recorder.progress[1].epoch, 3);
  EXPECT_EQ(recorder.progress[1].lr, optim::Schedule::cosine(0.05, 40).with_warmup(5).at(29));
  EXPECT_GT(recorder.progress[1].samples_per_second, 0);
  EXPECT_LT(recorder.progress[2].loss, recorder.progress[0].loss);
  EXPECT_EQ(recorder.progress[2].seconds_left, 0);
  ASSERT_EQ(recorder.evaluations.size(), 2u);
  EXPECT_EQ(recorder.evaluations[0].first, 20);
  EXPECT_GT(recorder.evaluations[1].second["accuracy"], 0.9);
  EXPECT_LT(recorder.evaluations[1].second["loss"], 0.3);
  expect_error<ValueError>([&] { recorder.evaluations[1].second["recall"]; }, {"'recall'", "loss, accuracy"});
  EXPECT_EQ(recorder.finished, 1);
}

TEST_P(Training, AnEvaluationChangesNothing) {
  PointsRun run(GetParam(), warm_cosine(5));
  run.trainer.advance(3);
  const NamedTensors before = run.net.state();
  const auto position = run.loader.position();
  const auto noise = run.noise.position();
  const auto first = run.trainer.evaluate(points(50, 3));
  EXPECT_TRUE(same_bits(run.net.state(), before));  // running statistics included
  EXPECT_EQ(run.loader.position(), position);
  EXPECT_EQ(run.noise.position(), noise);
  EXPECT_EQ(run.net.mode(), nn::Mode::training);
  EXPECT_TRUE(std::isfinite(first["loss"]));
}

TEST_P(Training, AResumedRunGivesTheBitsOfAnUninterruptedOne) {
  const ScratchFolder folder;
  const TrainerConfig config = warm_cosine(30).with_micro_batches(2);
  PointsRun whole(GetParam(), config);
  whole.trainer.fit();
  for (const std::int64_t interruption : {1, 8, 29}) {
    PointsRun first(GetParam(), config);
    first.trainer.advance(interruption);
    first.trainer.save(folder / "run.safetensors");
    PointsRun second(GetParam(), config);
    second.trainer.advance(2);  // whatever happened before resuming must not matter
    second.trainer.resume(folder / "run.safetensors");
    EXPECT_EQ(second.trainer.step(), interruption);
    second.trainer.fit();
    EXPECT_TRUE(same_bits(second.net.state(), whole.net.state())) << "interrupted after " << interruption;
    EXPECT_TRUE(same_bits(second.optimizer.state(), whole.optimizer.state()));
    EXPECT_EQ(second.noise.position(), whole.noise.position());
  }
}

TEST_P(Training, MemoryInUseIsFlatOverAHundredSteps) {
  PointsRun run(GetParam(), warm_cosine(120));
  run.trainer.advance(20);
  const std::size_t before = run.backend.memory_stats().in_use;
  run.trainer.advance(100);
  EXPECT_EQ(run.backend.memory_stats().in_use, before);
}

TEST_P(Training, MicroBatchesAverageLikeOneLargeBatch) {
  const auto weights_after = [this](std::int64_t batch_size, std::int64_t micro_batches) {
    Rng rng(1);
    nn::Linear<B> net(backend, {4, 2}, rng);
    optim::Sgd<B> optimizer(net.parameters(), optim::SgdConfig{}.with_lr(0.5));
    data::DataLoader loader(points(96, 4).with_row_shape({4}),
                            data::LoaderConfig{}.with_batch_size(batch_size));
    Trainer<B> trainer(net, optimizer, loader, supervised(net, cross_entropy),
                       TrainerConfig{}.with_steps(6).with_micro_batches(micro_batches));
    trainer.fit();
    return net.weight.to_vector<double>();
  };
  const auto large = weights_after(16, 1), small = weights_after(4, 4);
  for (std::size_t i = 0; i < large.size(); ++i) EXPECT_NEAR(small[i], large[i], 1e-5);
}

TEST_P(Training, CheckpointsKeepTheLastOnesAndTheBest) {
  const ScratchFolder folder;
  const auto config = warm_cosine(12).with_evaluate_every(4).with_checkpoints(folder / "run", 2, 3);
  PointsRun run(GetParam(), config);
  Recorder recorder;
  run.trainer.add_observer(recorder);
  run.trainer.validate_on(points(50, 3));
  run.trainer.fit();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"best.safetensors", "step-00000008.safetensors",
                                             "step-00000010.safetensors", "step-00000012.safetensors"}));
  double best = INFINITY;
  for (const auto& [step, evaluation] : recorder.evaluations) best = std::min(best, evaluation["loss"]);
  const Checkpoint kept = read_checkpoint(folder / "run" / "best.safetensors");
  EXPECT_EQ(kept.best, best);
  PointsRun restored(GetParam(), config);
  restored.net.load_state(read_weights(folder / "run" / "best.safetensors"));
  EXPECT_TRUE(same_bits(restored.net.state(), kept.model));
  EXPECT_TRUE(restored.trainer.resume_latest());
  EXPECT_EQ(restored.trainer.step(), 12);
}

TEST_P(Training, TheBestMayBeAHighValueOfAnyMetric) {
  const ScratchFolder folder;
  PointsRun run(GetParam(), warm_cosine(8)
                                .with_evaluate_every(2)
                                .with_checkpoints(folder / "run", 0)
                                .with_best("accuracy", Better::higher));
  run.trainer.add_metric(std::make_unique<Accuracy<B>>());
  Recorder recorder;
  run.trainer.add_observer(recorder);
  run.trainer.validate_on(points(50, 3));
  run.trainer.fit();
  double best = 0;
  for (const auto& [step, evaluation] : recorder.evaluations) best = std::max(best, evaluation["accuracy"]);
  EXPECT_EQ(read_checkpoint(folder / "run" / "best.safetensors").best, best);
  EXPECT_TRUE(
      std::filesystem::exists(folder / "run" / "step-00000008.safetensors"));  // the last one, at the end
}

TEST(Accuracy, CountsTheLargestScoresAndTakesNothingElse) {
  using Plain = Autodiff<Cpu>;
  Plain backend;
  const auto accuracy = [&](const Tensor<Plain>& output, const Tensor<Plain>& y) {
    Accuracy<Plain> metric;
    metric.add({mean(output), output}, {output, y, {}});
    return metric.value();
  };
  const auto scores = from_vector(backend, std::vector<float>{2, 1, 0, 3, 4, 1}, {3, 2});
  const auto targets = from_vector(backend, std::vector<std::int64_t>{0, 1, 1}, {3});
  EXPECT_NEAR(accuracy(scores, targets), 2.0 / 3, 1e-12);
  expect_error<ShapeError>([&] { accuracy(scores, reshape(targets, {3, 1})); }, {"[3, 2]", "[3, 1]"});
  expect_error<ShapeError>([&] { accuracy(slice(scores, 1, 0, 1), targets); }, {"two or more classes"});
  expect_error<ShapeError>([&] { accuracy(mean(scores), targets); }, {"[Accuracy] output []"});
  expect_error<DTypeError>([&] { accuracy(scores, cast(targets, DType::f32)); }, {"needs integers"});
}

TEST_P(Training, DoesNotValidateOnItsOwnSource) {
  PointsRun run(GetParam(), warm_cosine(8).with_evaluate_every(2));
  expect_error<ValueError>([&] { run.trainer.validate_on(run.loader, 1); },
                           {"the source that is trained on"});
}

TEST_P(Training, ANewRunInAUsedFolderSaysSoAndKeepsItsOwnFiles) {
  const ScratchFolder folder;
  const auto config = [&](std::int64_t steps) {
    return warm_cosine(steps).with_checkpoints(folder / "run", 2, 2);
  };
  PointsRun before(GetParam(), config(20));
  before.trainer.fit();
  EXPECT_TRUE(before.trainer.notices().empty());
  PointsRun anew(GetParam(), config(6));
  anew.trainer.fit();
  ASSERT_EQ(anew.trainer.notices().size(), 1u);
  EXPECT_NE(anew.trainer.notices()[0].find("step-00000020.safetensors is of an earlier run"),
            std::string::npos);
  for (const char* file : {"step-00000004.safetensors", "step-00000006.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(folder / "run" / file)) << file;
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "step-00000002.safetensors"));
  // One that was stopped before its first step goes on without a word.
  const auto stopped = warm_cosine(6).with_checkpoints(folder / "stopped", 2);
  PointsRun first(GetParam(), stopped), again(GetParam(), stopped);
  first.trainer.request_stop();
  EXPECT_EQ(first.trainer.fit(), Outcome::interrupted);
  ASSERT_TRUE(again.trainer.resume_latest());
  again.trainer.fit();
  EXPECT_TRUE(again.trainer.notices().empty());
  PointsRun resumed(GetParam(), config(30));
  ASSERT_TRUE(resumed.trainer.resume_latest());
  resumed.trainer.advance(1);
  EXPECT_TRUE(resumed.trainer.notices().empty());
}

TEST_P(Training, ARunThatDoesNotFitItsCheckpointIsRefusedUnchanged) {
  const ScratchFolder folder;
  const auto file = folder / "run.safetensors";
  PointsRun saved(GetParam(), warm_cosine(10).with_setting("net", "small"));
  saved.trainer.advance(3);
  saved.trainer.save(file);
  EXPECT_EQ(read_settings(file).at("net"), "small");

  const auto expect_refusal = [&](PointsRun& run, std::initializer_list<std::string_view> parts) {
    const NamedTensors net = run.net.state(), optimizer = run.optimizer.state();
    expect_error<ValueError>([&] { run.trainer.resume(file); }, parts);
    EXPECT_TRUE(same_bits(run.net.state(), net));
    EXPECT_TRUE(same_bits(run.optimizer.state(), optimizer));
    EXPECT_EQ(run.trainer.step(), 0);
    EXPECT_EQ(run.loader.position(), data::LoaderPosition{});
  };
  PointsRun other_schedule(GetParam(),
                           TrainerConfig{}.with_steps(10).with_schedule(optim::Schedule::constant(1)));
  expect_refusal(other_schedule, {"run.safetensors: schedule is \"cosine", "\"constant 1\""});
  PointsRun other_setting(GetParam(), warm_cosine(10).with_setting("net", "large"));
  expect_refusal(other_setting, {"net is \"small\" there and \"large\" here"});
  PointsRun other_seed(GetParam(), warm_cosine(10), 2);
  expect_refusal(other_seed, {"data is ", "seed 1", "seed 2"});
  PointsRun other_generators(GetParam(), warm_cosine(10));
  Rng extra(1);
  other_generators.trainer.add_rng("extra", extra);
  expect_refusal(other_generators, {"no position of the generator 'step.extra'"});
  PointsRun other_model(GetParam(), warm_cosine(10));
  other_model.net.add("late", nn::LayerNorm<B>(other_model.backend, {2}));
  expect_refusal(other_model, {"missing 'late.weight', 'late.bias'"});
}

TEST_P(Training, SettingsThatMakeNoSenseAreRefused) {
  expect_error<ValueError>([] { PointsRun(GetParam(), TrainerConfig{}); }, {"[trainer] steps 0"});
  expect_error<ValueError>([] { PointsRun(GetParam(), warm_cosine(1).with_micro_batches(0)); },
                           {"micro_batches 0"});
  expect_error<ValueError>([] { PointsRun(GetParam(), warm_cosine(1).with_report_every(0)); },
                           {"report_every 0"});
  expect_error<ValueError>([] { PointsRun(GetParam(), warm_cosine(1).with_setting("data", "mine")); },
                           {"setting 'data'"});
}

}  // namespace
}  // namespace ferrite::train
