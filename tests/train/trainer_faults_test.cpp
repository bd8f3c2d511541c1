// What goes wrong in a training run: metrics that are not there, numbers that are not finite, damaged
// checkpoints, models and optimisers that do not belong together.
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::cross_entropy;
using testing::expect_error;
using testing::points;
using testing::PointsRun;
using testing::Recorder;
using testing::same_bits;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;
using testing::warm_cosine;

class Faults : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, Faults, ::testing::Values("reference", "cpu", "lazy-cpu"), testing::name_of);

bool mentions(const std::vector<std::string>& texts, std::string_view part) {
  return std::ranges::any_of(texts, [&](const std::string& t) { return t.find(part) != std::string::npos; });
}

TEST_P(Faults, AMetricThatIsNotThereIsNamedBeforeTheFirstStep) {
  PointsRun run(GetParam(), warm_cosine(5).with_best("accuracy", Better::higher));
  run.trainer.validate_on(points(20, 3));
  expect_error<ValueError>([&] { run.trainer.fit(); },
                           {"[trainer] with_best('accuracy'): there are loss", "add_metric"});
  EXPECT_EQ(run.trainer.step(), 0);
  PointsRun no_validation(GetParam(), warm_cosine(5).with_early_stopping(2));
  expect_error<ValueError>([&] { no_validation.trainer.fit(); }, {"early stopping: needs validate_on"});
}

TEST_P(Faults, AMetricThatFailsAtTheEndDoesNotCostTheTraining) {
  struct Failing final : Metric<B> {
    std::string name() const override { return "failing"; }
    void add(const Prediction<B>&, const data::Batch<B>&) override { throw ValueError("[mine] no"); }
    double value() const override { return 0; }
    void reset() override {}
  };
  const ScratchFolder folder;
  PointsRun run(GetParam(), warm_cosine(3).with_checkpoints(folder / "run", 0));
  run.trainer.add_metric(std::make_unique<Failing>());
  run.trainer.validate_on(points(20, 3));
  expect_error<ValueError>([&] { run.trainer.fit(); }, {"[mine] no"});
  EXPECT_TRUE(std::filesystem::exists(folder / "run" / "step-00000003.safetensors"));
  // What it has drawn until it failed is undone, so that the run resumes to the bit.
  PointsRun without(GetParam(), warm_cosine(3));
  without.trainer.fit();
  EXPECT_EQ(run.noise.position(), without.noise.position());
}

TEST_P(Faults, AReportThatCannotBeWrittenDoesNotCostTheTraining) {
  struct FullDisk final : Observer {
    void on_progress(const Progress&) override { throw IoError("[mine] no space left"); }
    void on_finish() override { throw IoError("[mine] no space left"); }
  };
  FullDisk disk;
  Recorder after;
  PointsRun run(GetParam(), warm_cosine(3).with_report_every(1));
  run.trainer.add_observer(disk);
  run.trainer.add_observer(after);
  run.trainer.fit();
  EXPECT_EQ(run.trainer.step(), 3);
  EXPECT_EQ(run.trainer.notices(), std::vector<std::string>{"[mine] no space left; the training goes on"});
  EXPECT_EQ(after.notices, run.trainer.notices());
}

/// A linear net on batches of which some are bad. The model's loss takes a logarithm, so that it can go wrong
/// by itself too.
struct Fragile {
  using B = Autodiff<AnyBackend>;
  B backend;
  Rng rng{1};
  nn::Sequential<B> net;
  optim::Sgd<B> optimizer;
  data::Generated source;
  Trainer<B> trainer;
  double shift = 5;  // keeps the argument of the logarithm positive

  Fragile(const char* name, const TrainerConfig& config, std::function<bool(std::int64_t)> bad)
      : backend(name),
        net(make(backend, rng)),
        optimizer(net.parameters(), optim::SgdConfig{}.with_lr(1e-3)),
        source("rows, some bad", [bad](std::int64_t n) { return std::optional(batch(bad(n))); }),
        trainer(net, optimizer, source, step(), config) {}

  static nn::Sequential<B> make(B& backend, Rng& rng) {
    nn::Sequential<B> net;
    net.add("norm", nn::BatchNorm2d<B>(backend, {1})).add(nn::Flatten<B>());
    net.add("head", nn::Linear<B>(backend, {4, 1}, rng));
    return net;
  }
  static data::HostBatch batch(bool bad) {
    std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
    if (bad) values[6] = NAN;
    const HostTensor x = HostTensor::from(std::span<const float>(values), {2, 1, 2, 2});
    return {x, HostTensor::from(std::span<const float>({0.0f, 1.0f}), {2, 1})};
  }
  StepFunction<B> step() {
    return [this](const data::Batch<B>& b) {
      const Tensor<B> output = net.forward(b.x);
      return Prediction<B>{mean(square(log(output + shift) - b.y)), output};
    };
  }
};

TEST_P(Faults, ABadBatchStopsTheRunByNameAndTheGoodCheckpointsStay) {
  const ScratchFolder folder;
  Fragile run(GetParam(), TrainerConfig{}.with_steps(100).with_checkpoints(folder / "run", 2, 2),
              [](std::int64_t n) { return n == 7; });
  expect_error<ValueError>(
      [&] { run.trainer.fit(); },
      {"[trainer] step 8: the loss is NaN; x of the batch holds NaN in row 1", "the last good checkpoint is",
       "step-00000006.safetensors", "with_non_finite(NonFinite::skip)"});
  EXPECT_EQ(run.trainer.step(), 7);
  // The model stands as after the last good step, running statistics included.
  Fragile shorter(GetParam(), TrainerConfig{}.with_steps(7), [](std::int64_t) { return false; });
  shorter.trainer.fit();
  EXPECT_TRUE(same_bits(run.net.state(), shorter.net.state()));
  EXPECT_TRUE(run.trainer.resume_latest());
  EXPECT_EQ(run.trainer.step(), 6);
}

TEST_P(Faults, AnOpThatMakesNaNIsNamed) {
  Fragile run(GetParam(), TrainerConfig{}.with_steps(10), [](std::int64_t) { return false; });
  run.trainer.advance(3);
  run.shift = -100;
  expect_error<ValueError>(
      [&] { run.trainer.fit(); },
      {"step 4: the loss is NaN; the first op whose result holds NaN is [log], f32[2, 1]",
       "there is no checkpoint"});
}

TEST_P(Faults, ALossThatIsReadLateIsNamedByItsStepAndNeverSaved) {
  const ScratchFolder folder;
  const auto bad = [](std::int64_t n) { return n == 7; };
  const auto config = TrainerConfig{}.with_steps(100).with_report_every(50).with_check_every(20);
  Fragile run(GetParam(), config.with_checkpoints(folder / "run", 5), bad);
  expect_error<ValueError>([&] { run.trainer.fit(); }, {"step 8: the loss is NaN, as was read at step 10",
                                                        "with_check_every(1)", "step-00000005.safetensors"});
  Fragile unsaved(GetParam(), config, bad);
  expect_error<ValueError>([&] { unsaved.trainer.fit(); },
                           {"step 8: the loss is NaN, as was read at step 19"});
}

TEST_P(Faults, ABadBatchCanBeSkipped) {
  const auto none = [](std::int64_t) { return false; };
  const auto config = TrainerConfig{}.with_steps(10).with_non_finite(NonFinite::skip);
  Fragile run(GetParam(), config, [](std::int64_t n) { return n == 3 || n == 4; }),
      clean(GetParam(), config, none);
  Recorder recorder;
  run.trainer.add_observer(recorder);
  EXPECT_EQ(run.trainer.fit(), Outcome::finished);
  clean.trainer.fit();
  EXPECT_TRUE(same_bits(run.net.state(), clean.net.state()));  // as if they had never been there
  EXPECT_EQ(run.source.position().batch, 12);
  ASSERT_EQ(recorder.notices.size(), 2u);
  EXPECT_NE(
      recorder.notices[0].find("step 4: the loss is NaN; x of the batch holds NaN in row 1: the batch is "
                               "skipped"),
      std::string::npos)
      << recorder.notices[0];
  EXPECT_TRUE(std::isfinite(recorder.progress.back().loss));
  Fragile hopeless(GetParam(), config, [](std::int64_t n) { return n >= 3; });
  expect_error<ValueError>([&] { hopeless.trainer.fit(); }, {"step 4", "10 batches before it were skipped"});
}

TEST_P(Faults, AGradientThatIsNotFiniteIsSkippedOrNamedByItsParameter) {
  // sqrt has a finite value and an infinite slope at 0.
  const auto train = [this](NonFinite policy, double lr, std::int64_t steps = 4) {
    Rng rng(1);
    nn::Linear<B> net(backend, nn::LinearConfig{1, 1}.with_init(nn::Initializer::ones()).with_bias(false),
                      rng);
    optim::Sgd<B> optimizer(net.parameters(), optim::SgdConfig{}.with_lr(lr));
    const auto batch = [](std::int64_t n) {
      const float x[] = {n == 2 ? 0.0f : 1.0f};
      const HostTensor t = HostTensor::from(std::span<const float>(x), {1, 1});
      return std::optional(data::HostBatch{t, t});
    };
    data::Generated source("ones but for one", batch);
    Trainer<B> trainer(
        net, optimizer, source,
        [&](const data::Batch<B>& b) {
          const Tensor<B> y = net.forward(b.x);
          return Prediction<B>{mean(sqrt(y)), y};
        },
        TrainerConfig{}.with_steps(steps).with_non_finite(policy));
    trainer.fit();
    return trainer.notices();
  };
  EXPECT_TRUE(mentions(train(NonFinite::skip, 0.01), "step 3: gradients that are not finite, of 'weight'"));
  expect_error<ValueError>(
      [&] { train(NonFinite::stop, 0.01); },
      {"step 4: the loss is NaN; parameter 'weight' is not finite since an earlier update"});
  // No loss follows the last update.
  expect_error<ValueError>([&] { train(NonFinite::stop, 0.01, 3); },
                           {"step 3: 'weight' holds NaN after the last update", "there is no checkpoint"});
}

TEST_P(Faults, WeightsThatHoldNaNAreNeverSaved) {
  const ScratchFolder folder;
  PointsRun run(GetParam(), warm_cosine(4).with_checkpoints(folder / "run", 1));
  run.trainer.advance(2);
  NamedTensors state = run.net.state();
  state["norm.running_mean"] = HostTensor::from(std::span<const float>({NAN, 0.0f, 0.0f, 0.0f}), {4});
  run.net.load_state(state);
  expect_error<ValueError>([&] { run.trainer.advance(1); },
                           {"step 3: 'norm.running_mean' holds NaN", "step-00000002.safetensors"});
  EXPECT_FALSE(std::filesystem::exists(folder / "run" / "step-00000003.safetensors"));
}

TEST_P(Faults, ADamagedNewestCheckpointFallsBackToTheOneBeforeAndSaysSo) {
  const ScratchFolder folder;
  const auto config = warm_cosine(20).with_checkpoints(folder / "run", 2, 3);
  PointsRun whole(GetParam(), warm_cosine(20));
  whole.trainer.fit();
  PointsRun first(GetParam(), config);
  first.trainer.advance(6);
  const auto newest = folder / "run" / "step-00000006.safetensors";
  spill(newest, slurp(newest).substr(0, 200));
  PointsRun second(GetParam(), config);
  EXPECT_TRUE(second.trainer.resume_latest());
  Recorder late;  // observers that come later hear of it too
  second.trainer.add_observer(late);
  EXPECT_EQ(second.trainer.step(), 4);
  ASSERT_EQ(late.notices.size(), 1u);
  EXPECT_NE(late.notices[0].find("[resume] from step-00000004.safetensors"), std::string::npos);
  EXPECT_NE(late.notices[0].find("step-00000006.safetensors"), std::string::npos);
  second.trainer.fit();
  EXPECT_TRUE(same_bits(second.net.state(), whole.net.state()));
  for (const char* name : {"16", "18", "20"}) {
    const auto path = folder / "run" / ("step-000000" + std::string(name) + ".safetensors");
    ASSERT_TRUE(std::filesystem::exists(path));
    spill(path, "no checkpoint");
  }
  PointsRun third(GetParam(), config);
  expect_error<ParseError>([&] { third.trainer.resume_latest(); },
                           {"none of the checkpoints", "step-00000020", "step-00000016"});
  EXPECT_EQ(third.trainer.step(), 0);
}

TEST_P(Faults, AnOptimiserOfAnotherModelIsRefused) {
  Rng rng(1);
  nn::Linear<B> mine(backend, {4, 2}, rng), other(backend, {4, 2}, rng);
  data::DataLoader loader(points(10, 1).with_row_shape({4}));
  optim::Sgd<B> of_other(other.parameters());
  const auto make = [&](optim::Sgd<B>& optimizer) {
    return Trainer<B>(mine, optimizer, loader, supervised(mine, cross_entropy),
                      TrainerConfig{}.with_steps(2));
  };
  expect_error<ValueError>([&] { make(of_other); },
                           {"'weight' of the optimiser is not a parameter of the model"});
  optim::Sgd<B> partial({mine.parameters()[0]});
  auto trainer = make(partial);
  EXPECT_TRUE(mentions(trainer.notices(), "never change: 'bias'"));
}

TEST_P(Faults, ObserversHearWhatTheOptimiserNotices) {
  Rng rng(1);
  nn::Sequential<B> net;
  net.add("used", nn::Linear<B>(backend, nn::LinearConfig{4, 2}.with_dtype(DType::bf16), rng));
  net.add("unused", nn::Linear<B>(backend, {2, 2}, rng));
  data::DataLoader loader(points(10, 1).with_row_shape({4}));
  optim::Sgd<B> optimizer(net.parameters());
  Trainer<B> trainer(
      net, optimizer, loader,
      [&](const data::Batch<B>& batch) {
        const Tensor<B> y = net[0].forward(cast(batch.x, DType::bf16));
        return Prediction<B>{softmax_cross_entropy(y, batch.y), y};
      },
      TrainerConfig{}.with_steps(3));
  Recorder recorder;
  trainer.add_observer(recorder);
  EXPECT_TRUE(mentions(recorder.notices, "16-bit parameters 'used.weight', 'used.bias'"));
  trainer.fit();
  EXPECT_TRUE(mentions(recorder.notices, "no gradient in the first step for 'unused.weight', 'unused.bias'"));
  EXPECT_EQ(recorder.notices.size(), 2u);
}

}  // namespace
}  // namespace ferrite::train
