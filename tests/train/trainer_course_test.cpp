// How a run goes beside its updates: where the data come from, when it stops, how it is prolonged.
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::expect_error;
using testing::points;
using testing::points_net;
using testing::PointsRun;
using testing::Recorder;
using testing::same_bits;
using testing::ScratchFolder;
using testing::warm_cosine;

class Course : public testing::OnBackends {};
INSTANTIATE_TEST_SUITE_P(Names, Course, ::testing::Values("reference", "cpu"), testing::name_of);

TEST_P(Course, StopsWhenTheMetricGetsNoBetter) {
  const ScratchFolder folder;
  // With this min_delta nothing after the first evaluation counts as better.
  const auto config =
      warm_cosine(40).with_evaluate_every(2).with_early_stopping(3, 100).with_checkpoints(folder / "run", 2);
  PointsRun run(GetParam(), config);
  Recorder recorder;
  run.trainer.add_observer(recorder);
  run.trainer.validate_on(points(20, 3));
  EXPECT_EQ(run.trainer.fit(), Outcome::stopped_early);
  EXPECT_EQ(run.trainer.step(), 8);  // the first evaluation and three that were no better
  EXPECT_EQ(recorder.evaluations.size(), 4u);
  EXPECT_EQ(recorder.finished, 1);
  ASSERT_EQ(recorder.notices.size(), 1u);
  EXPECT_NE(recorder.notices[0].find("stopped at step 8: 'loss' has not got better in 3 evaluations"),
            std::string::npos);
  // Patience goes through checkpoints: one evaluation is left after the file of step 6.
  PointsRun resumed(GetParam(), config);
  resumed.trainer.validate_on(points(20, 3));
  resumed.trainer.resume(folder / "run" / "step-00000006.safetensors");
  EXPECT_EQ(resumed.trainer.fit(), Outcome::stopped_early);
  EXPECT_EQ(resumed.trainer.step(), 8);
  EXPECT_TRUE(same_bits(resumed.net.state(), run.net.state()));
  PointsRun patient(GetParam(), warm_cosine(40).with_evaluate_every(2).with_early_stopping(30));
  patient.trainer.validate_on(points(20, 3));
  EXPECT_EQ(patient.trainer.fit(), Outcome::finished);
}

TEST_P(Course, SaysWhenTheFileHasAnotherLearningRate) {
  const ScratchFolder folder;
  const auto file = folder / "run.safetensors";
  const auto config = TrainerConfig{}.with_steps(4);
  PointsRun first(GetParam(), config), same(GetParam(), config), other(GetParam(), config);
  first.trainer.save(file);
  same.trainer.resume(file);
  EXPECT_TRUE(same.trainer.notices().empty());
  other.optimizer.set_learning_rate(0.25);
  other.trainer.resume(file);
  ASSERT_EQ(other.trainer.notices().size(), 1u);
  EXPECT_NE(other.trainer.notices()[0].find("the learning rate is the checkpoint's, 0.001, and not 0.25"),
            std::string::npos)
      << other.trainer.notices()[0];
}

TEST_P(Course, MayBeProlonged) {
  const ScratchFolder folder;
  const auto file = folder / "run.safetensors";
  // The same schedule and more steps: as if they had been planned.
  PointsRun planned(GetParam(), warm_cosine(60)), first(GetParam(), warm_cosine(40)),
      longer(GetParam(), warm_cosine(60));
  planned.trainer.fit();
  first.trainer.fit();
  first.trainer.save(file);
  longer.trainer.resume(file);
  longer.trainer.fit();
  EXPECT_TRUE(same_bits(longer.net.state(), planned.net.state()));
  // Another schedule: refused unless it is allowed, and then followed from the checkpoint's step on.
  const auto stretched = TrainerConfig{}.with_steps(60).with_schedule(optim::Schedule::cosine(0.05, 60));
  PointsRun refused(GetParam(), stretched);
  expect_error<ValueError>([&] { refused.trainer.resume(file); },
                           {"schedule is \"cosine", "with_schedule_change(ScheduleChange::accept)"});
  PointsRun accepted(GetParam(), stretched.with_schedule_change(ScheduleChange::accept));
  accepted.trainer.resume(file);
  ASSERT_EQ(accepted.trainer.notices().size(), 1u);
  EXPECT_NE(accepted.trainer.notices()[0].find("over 60 steps\" from step 40 on"), std::string::npos);
  accepted.trainer.advance(1);
  EXPECT_EQ(accepted.optimizer.learning_rate(), optim::Schedule::cosine(0.05, 60).at(40));
  PointsRun shorter(GetParam(), warm_cosine(30));
  shorter.trainer.resume(file);
  EXPECT_EQ(shorter.trainer.fit(), Outcome::finished);
  EXPECT_EQ(shorter.trainer.step(), 40);
  EXPECT_NE(shorter.trainer.notices().at(0).find("nothing is left to train"), std::string::npos);
}

TEST_P(Course, KeepsAnAverageOfTheWeights) {
  const ScratchFolder folder;
  const auto plain = warm_cosine(30).with_evaluate_every(10), config = plain.with_average(0.9, 2);
  PointsRun without(GetParam(), plain), whole(GetParam(), config), first(GetParam(), config),
      second(GetParam(), config);
  Recorder recorder;
  whole.trainer.add_observer(recorder);
  for (PointsRun* run : {&without, &whole, &first, &second}) run->trainer.validate_on(points(30, 6));
  // By its definition, from the weights after every second step.
  std::vector<double> average;
  const auto weights = [](PointsRun& run) {
    const NamedTensors state = run.net.state();
    const auto values = state.at("head.weight").as<float>();
    return std::vector<double>(values.begin(), values.end());
  };
  average = weights(whole);
  for (int step = 2; step <= 30; step += 2) {
    whole.trainer.advance(2);
    const std::vector<double> now = weights(whole);
    const double keep = std::min(0.81, (1 + step / 2) / (10.0 + step / 2));  // less in the first updates
    for (std::size_t i = 0; i < now.size(); ++i) average[i] = keep * average[i] + (1 - keep) * now[i];
  }
  whole.trainer.save(folder / "whole.safetensors");
  const NamedTensors averaged = read_weights(folder / "whole.safetensors");
  const auto saved = averaged.at("head.weight").as<float>();
  for (std::size_t i = 0; i < average.size(); ++i) EXPECT_NEAR(saved[i], average[i], 1e-5);
  EXPECT_TRUE(averaged.contains("norm.running_mean"));  // which has no average
  // Training does not depend on it; evaluations measure it.
  without.trainer.fit();
  EXPECT_TRUE(same_bits(whole.net.state(), without.net.state()));
  EXPECT_TRUE(same_bits(without.trainer.weights(), without.net.state()));
  PointsRun judge(GetParam(), plain);
  judge.net.load_state(averaged);
  judge.noise.set_position(whole.noise.position());
  EXPECT_EQ(judge.trainer.evaluate(points(30, 6))["loss"], recorder.evaluations.back().second["loss"]);
  // It resumes to the bit; and not in a run without one.
  first.trainer.advance(13);
  first.trainer.save(folder / "first.safetensors");
  second.trainer.resume(folder / "first.safetensors");
  second.trainer.fit();
  second.trainer.save(folder / "second.safetensors");
  EXPECT_TRUE(same_bits(read_weights(folder / "second.safetensors"), averaged));
  PointsRun other(GetParam(), plain.with_average(0.5));
  expect_error<ValueError>([&] { other.trainer.resume(folder / "first.safetensors"); }, {"average is"});
  expect_error<ValueError>([&] { PointsRun(GetParam(), plain.with_average(1)); }, {"average 1"});
}

TEST_P(Course, AveragesBeginWithTheWeightsOfTheFirstStep) {
  PointsRun trained(GetParam(), warm_cosine(30)), tuned(GetParam(), warm_cosine(30).with_average(0.99), 2);
  trained.trainer.fit();
  tuned.net.load_state(trained.net.state());
  tuned.noise.set_position(trained.noise.position());
  EXPECT_EQ(tuned.trainer.evaluate(points(30, 6))["loss"], trained.trainer.evaluate(points(30, 6))["loss"]);
  EXPECT_TRUE(same_bits(tuned.trainer.weights(), trained.net.state()));
}

TEST_P(Course, AveragesReachTheLastStepOfARun) {
  const ScratchFolder folder;
  const auto config = [](std::int64_t steps) { return warm_cosine(steps).with_average(0.9, 10); };
  const auto head = [](const NamedTensors& state) {
    const auto values = state.at("head.weight").as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  const auto averages_of = [&](PointsRun& run) {
    run.trainer.save(folder / "run.safetensors");
    return read_weights(folder / "run.safetensors");
  };
  // Shorter than the time between two updates: as one update, in place of the first weights.
  PointsRun brief(GetParam(), config(4));
  Recorder recorder;
  brief.trainer.add_observer(recorder);
  brief.trainer.validate_on(points(30, 6));
  const std::vector<float> begin = head(brief.net.state());
  brief.trainer.fit();
  const std::vector<float> end = head(brief.net.state());
  const NamedTensors averaged = averages_of(brief);
  EXPECT_TRUE(same_bits(brief.trainer.weights(), averaged));
  for (std::size_t i = 0; i < begin.size(); ++i)
    EXPECT_NEAR(head(averaged)[i], begin[i] * 2 / 11 + end[i] * 9 / 11, 1e-5);
  PointsRun judge(GetParam(), warm_cosine(4));
  judge.net.load_state(averaged);
  judge.noise.set_position(brief.noise.position());
  EXPECT_EQ(judge.trainer.evaluate(points(30, 6))["loss"], recorder.evaluations.back().second["loss"]);
  // A run that ends between two updates and is prolonged has the averages of one that was planned longer.
  PointsRun whole(GetParam(), config(25)), first(GetParam(), config(13)), longer(GetParam(), config(25));
  whole.trainer.fit();
  first.trainer.fit();
  EXPECT_FALSE(same_bits(averages_of(first), first.net.state()));
  longer.trainer.resume(folder / "run.safetensors");
  EXPECT_TRUE(same_bits(averages_of(longer), averages_of(first)));
  longer.trainer.fit();
  EXPECT_TRUE(same_bits(averages_of(longer), averages_of(whole)));
}

TEST_P(Course, FollowsAScheduleOfTheUsers) {
  const auto factor = [](std::int64_t step) { return 1.0 / static_cast<double>(1 + step); };
  PointsRun run(GetParam(), TrainerConfig{}.with_steps(5).with_schedule(
                                optim::Schedule::custom(0.1, factor, "harmonic")));
  run.trainer.advance(3);
  EXPECT_DOUBLE_EQ(run.optimizer.learning_rate(), 0.1 / 3);
}

/// Two inputs: the net sees one of them, scaled by the other.
struct TwoInputs {
  using B = Autodiff<AnyBackend>;
  B backend;
  Rng rng{1};
  nn::Linear<B> net{backend, {4, 2}, rng};
  optim::AdamW<B> optimizer{net.parameters()};
  Trainer<B> trainer;

  TwoInputs(const char* name, data::BatchSource& source, std::int64_t steps)
      : backend(name), trainer(net, optimizer, source, step(), TrainerConfig{}.with_steps(steps)) {}
  StepFunction<B> step() {
    return [this](const data::Batch<B>& batch) {
      const Tensor<B> logits = net.forward(batch.x * batch.more[0]);
      return Prediction<B>{softmax_cross_entropy(logits, batch.y), logits};
    };
  }
  static data::Dataset data() {
    Reference host;
    Rng rng(3);
    return points(30, 2).with_row_shape({4}).with_input(rand(host, {30, 1}, rng));
  }
};

TEST_P(Course, TakesSeveralInputsFromAnySourceAheadOfTime) {
  const ScratchFolder folder;
  const data::Dataset dataset = TwoInputs::data();
  const auto config = data::LoaderConfig{}.with_batch_size(4).with_seed(2);
  data::DataLoader plain(dataset, config);
  TwoInputs whole(GetParam(), plain, 20);
  whole.trainer.fit();
  EXPECT_GT(whole.trainer.evaluate(dataset)["loss"], 0);

  // With a thread ahead and an interruption, bit for bit the same.
  data::DataLoader loader(dataset, config), other(dataset, config);
  {
    data::Prefetch ahead(loader);
    TwoInputs first(GetParam(), ahead, 20);
    first.trainer.advance(11);
    first.trainer.save(folder / "a.safetensors");
  }
  data::Prefetch ahead(other, 4);
  TwoInputs second(GetParam(), ahead, 20);
  second.trainer.resume(folder / "a.safetensors");
  second.trainer.fit();
  EXPECT_TRUE(same_bits(second.net.state(), whole.net.state()));

  // A function of the batch's number.
  data::Generated generated("rows in order", [&](std::int64_t n) {
    const std::int64_t rows[] = {n % 30, (n + 1) % 30};
    return std::optional(dataset.rows(rows));
  });
  TwoInputs third(GetParam(), generated, 5);
  EXPECT_EQ(third.trainer.fit(), Outcome::finished);
  EXPECT_EQ(generated.position().batch, 5);
}

/// A stream: it has an end and no way back.
struct Stream final : data::BatchSource {
  data::DataLoader loader;
  std::int64_t left;
  Stream(data::Dataset dataset, std::int64_t batches) : loader(std::move(dataset)), left(batches) {}
  std::optional<data::HostBatch> pull() override { return left-- > 0 ? loader.pull() : std::nullopt; }
  std::string describe() const override { return "a stream"; }
  data::LoaderPosition position() const override { return loader.position(); }
};

TEST_P(Course, EndsWithItsDataAndSaysSo) {
  const ScratchFolder folder;
  Stream source(TwoInputs::data(), 7);
  TwoInputs run(GetParam(), source, 20);
  EXPECT_EQ(run.trainer.fit(), Outcome::out_of_data);
  EXPECT_EQ(run.trainer.step(), 7);
  EXPECT_NE(run.trainer.notices().at(0).find("stopped at step 7: the source has no more batches"),
            std::string::npos);
  run.trainer.save(folder / "a.safetensors");
  Stream rest(TwoInputs::data(), 3);
  TwoInputs resumed(GetParam(), rest, 20);
  resumed.trainer.resume(folder / "a.safetensors");
  EXPECT_NE(resumed.trainer.notices().at(0).find("(a stream) cannot seek"), std::string::npos);
  resumed.trainer.fit();
  EXPECT_EQ(resumed.trainer.step(), 10);
}

}  // namespace
}  // namespace ferrite::train
