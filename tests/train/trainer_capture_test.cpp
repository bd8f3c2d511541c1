// Captured training on a stand-in for a GPU (train/tape.hpp).
// On a GPU, tests/backend_cuda/trainer_capture_test.cpp does the same with graphs.
#include <numeric>

#include "train/tape.hpp"
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
using testing::Tape;
using testing::warm_cosine;

using B = Autodiff<Tape<Cpu>>;

/// Points without random draws, which the tape would repeat; with running statistics, a schedule and a clip.
struct TapeRun {
  B backend;
  nn::Sequential<B> net = points_net(backend, 1, 0.0);
  optim::AdamW<B> optimizer{net.parameters(), optim::AdamWConfig{}.with_clip_norm(0.5)};
  data::DataLoader loader;
  Recorder recorder;
  Trainer<B> trainer;

  explicit TapeRun(const TrainerConfig& config, std::int64_t rows = 96, StepFunction<B> step = {})
      : loader(points(rows, 5), data::LoaderConfig{}.with_batch_size(8).with_seed(1)),
        trainer(net, optimizer, loader, step ? step : supervised(net, cross_entropy), config) {
    trainer.add_observer(recorder);
  }
  int replays() { return backend.inner().state().replays; }
};

void expect_same(TapeRun& a, TapeRun& b) {
  EXPECT_TRUE(same_bits(a.net.state(), b.net.state()));  // running statistics included
  EXPECT_TRUE(same_bits(a.optimizer.state(), b.optimizer.state()));
  ASSERT_EQ(a.recorder.progress.size(), b.recorder.progress.size());
  for (std::size_t i = 0; i < a.recorder.progress.size(); ++i) {
    EXPECT_EQ(a.recorder.progress[i].loss, b.recorder.progress[i].loss);
    EXPECT_EQ(a.recorder.progress[i].gradient_norm, b.recorder.progress[i].gradient_norm);
    EXPECT_EQ(a.recorder.progress[i].lr, b.recorder.progress[i].lr);
  }
}

TEST(CapturedTraining, ReplaysGiveTheBitsOfEagerSteps) {
  for (const std::int64_t micro_batches : {1, 3}) {
    const auto config = warm_cosine(20).with_micro_batches(micro_batches).with_report_every(3);
    TapeRun eager(config), captured(config.with_capture());
    eager.trainer.fit();
    captured.trainer.fit();
    EXPECT_EQ(eager.replays(), 0);
    EXPECT_EQ(captured.replays(), 18);  // all but two
    EXPECT_GT(captured.recorder.progress[3].gradient_norm, 0);
    expect_same(eager, captured);
  }
}

TEST(CapturedTraining, ABatchOfAnotherShapeRunsOpByOp) {
  const auto config = warm_cosine(20).with_report_every(1);
  TapeRun eager(config, 60), captured(config.with_capture(), 60);  // 8 batches, the last of 4 rows
  eager.trainer.fit();
  captured.trainer.fit();
  EXPECT_EQ(captured.replays(), 16);
  expect_same(eager, captured);
}

TEST(CapturedTraining, BatchesOfSeveralShapesHaveRecordingsOfTheirOwn) {
  const auto config = warm_cosine(40).with_report_every(1);
  TapeRun eager(config, 60), captured(config.with_capture().with_recorded_kinds(2), 60);
  eager.trainer.fit();
  captured.trainer.fit();
  EXPECT_EQ(captured.replays(), 36);  // of 35 large batches and 5 small ones all but two each
  EXPECT_EQ(captured.backend.inner().state().recorded_beside, 1);  // the second, with the memory of the first
  expect_same(eager, captured);
  expect_error<ValueError>([] { TapeRun(warm_cosine(4).with_recorded_kinds(0)); }, {"recorded_kinds 0"});
}

/// The batches of the source only say where the rows begin; they lie on the backend all the time.
class RowsOnTheBackend final : public Loading<B> {
 public:
  explicit RowsOnTheBackend(B& backend, const data::Dataset& all)
      : x_(from_host(backend, all.x())), y_(from_host(backend, all.y())) {}
  data::Batch<B> load(B&, const data::HostBatch& host) override {
    const std::int64_t first = host.x.as<std::int64_t>()[0];
    return {clone(slice(x_, 0, first, first + 8)), clone(slice(y_, 0, first, first + 8))};
  }
  void load_into(const data::HostBatch& host, const data::Batch<B>& into) override {
    const data::Batch<B> rows = load(into.x.backend(), host);
    assign(into.x, to_host(rows.x));
    assign(into.y, to_host(rows.y));
  }

 private:
  Tensor<B> x_, y_;
};

TEST(CapturedTraining, BatchesMayBeMadeOnTheBackend) {
  const auto config = warm_cosine(20).with_report_every(1);
  const data::Dataset all = points(96, 5);
  const auto train = [&](bool loads, const TrainerConfig& how) {
    auto run = std::make_unique<TapeRun>(how);
    RowsOnTheBackend rows(run->backend, all);
    data::Generated source("rows", [&](std::int64_t number) {
      const std::int64_t first = number % 12 * 8;
      std::vector<std::int64_t> numbers(8);
      std::iota(numbers.begin(), numbers.end(), first);
      if (!loads) return std::optional(all.rows(numbers));
      const auto order = HostTensor::from(std::span<const std::int64_t>(&first, 1), {1});
      return std::optional(data::HostBatch{order, order});
    });
    Trainer<B> trainer(run->net, run->optimizer, source, supervised(run->net, cross_entropy), how);
    if (loads) trainer.load_by(rows);
    trainer.fit();
    return run;
  };
  const auto copied = train(false, config), loaded = train(true, config),
             replayed = train(true, config.with_capture());
  EXPECT_EQ(replayed->replays(), 18);
  EXPECT_TRUE(same_bits(copied->net.state(), loaded->net.state()));
  // Another loading forgets the recordings; a stop right after it still reports.
  TapeRun changed(config.with_capture());
  changed.trainer.advance(5);
  Loading<B> other;
  changed.trainer.load_by(other);
  changed.trainer.request_stop();
  EXPECT_EQ(changed.trainer.advance(1), Outcome::interrupted);
  EXPECT_TRUE(same_bits(copied->net.state(), replayed->net.state()));
}

TEST(CapturedTraining, EvaluationsAndResumptionsChangeNothing) {
  const ScratchFolder folder;
  const auto config = warm_cosine(20).with_evaluate_every(4);
  TapeRun eager(config), first(config.with_capture()), second(config.with_capture());
  for (TapeRun* run : {&eager, &first, &second}) run->trainer.validate_on(points(30, 6));
  eager.trainer.fit();
  first.trainer.advance(9);
  first.trainer.save(folder / "a.safetensors");
  second.trainer.advance(5);  // it has recorded a step, and then gets other weights
  second.trainer.resume(folder / "a.safetensors");
  second.trainer.fit();
  EXPECT_TRUE(same_bits(eager.net.state(), second.net.state()));
  EXPECT_TRUE(same_bits(eager.optimizer.state(), second.optimizer.state()));
  EXPECT_EQ(eager.recorder.evaluations.back().second["loss"],
            second.recorder.evaluations.back().second["loss"]);
}

TEST(CapturedTraining, AStepThatReadsTheHostIsRefusedOrRunsOpByOp) {
  const auto run_with = [](Capture capture) {
    std::unique_ptr<TapeRun> run;
    const StepFunction<B> step = [&run](const data::Batch<B>& batch) {
      const Tensor<B> logits = run->net.forward(batch.x);
      const Tensor<B> loss = softmax_cross_entropy(logits, batch.y);
      static_cast<void>(loss.item());
      return Prediction<B>{loss, logits};
    };
    run = std::make_unique<TapeRun>(warm_cosine(6).with_capture(capture), 96, step);
    run->trainer.fit();
    return run;
  };
  expect_error<BackendError>([&] { run_with(Capture::required); },
                             {"[trainer] with_capture(Capture::required)", "cannot be recorded", "[item]"});
  const auto run = run_with(Capture::if_possible);
  TapeRun eager(warm_cosine(6));
  eager.trainer.fit();
  EXPECT_EQ(run->replays(), 0);
  ASSERT_EQ(run->recorder.notices.size(), 1u);
  EXPECT_NE(run->recorder.notices[0].find("steps run op by op: the step cannot be recorded: [item]"),
            std::string::npos);
  EXPECT_TRUE(same_bits(run->net.state(), eager.net.state()));
}

TEST(CapturedTraining, ALossThatIsNotFiniteIsFoundAfterItsUpdate) {
  TapeRun run(warm_cosine(20).with_capture().with_check_every(4));
  run.trainer.advance(5);
  auto weights = run.net.state();
  const auto& head = weights.at("head.weight");
  const std::vector<float> bad(static_cast<std::size_t>(head.numel()), NAN);
  weights["head.weight"] = HostTensor::from(std::span<const float>(bad), head.shape());
  run.net.load_state(weights);
  expect_error<ValueError>([&] { run.trainer.fit(); }, {"step 6: the loss is NaN", "read at step 8"});
}

TEST(CapturedTraining, BackendsWithoutRecordingsRunEagerlyOrSaySo) {
  for (const char* name : {"cpu", "reference"}) {
    PointsRun eager(name, warm_cosine(4)), possible(name, warm_cosine(4).with_capture(Capture::if_possible));
    eager.trainer.fit();
    possible.trainer.fit();
    EXPECT_TRUE(possible.trainer.notices().empty());
    EXPECT_TRUE(same_bits(eager.net.state(), possible.net.state()));
    expect_error<BackendError>([&] { PointsRun(name, warm_cosine(4).with_capture(Capture::required)); },
                               {"[trainer] with_capture(Capture::required)", name, "cannot record"});
    AnyBackend backend(name);
    EXPECT_FALSE(can_record(backend));
    expect_error<BackendError>([&] { record(backend, [] {}); }, {"[record]", "cannot record steps"});
  }
}

TEST(CapturedTraining, SkippingBatchesNeedsEveryLossBeforeTheUpdate) {
  const auto config = warm_cosine(4).with_non_finite(NonFinite::skip);
  expect_error<BackendError>([&] { TapeRun(config.with_capture()); }, {"NonFinite::skip"});
  TapeRun run(config.with_capture(Capture::if_possible));
  run.trainer.fit();
  EXPECT_EQ(run.replays(), 0);
  EXPECT_EQ(run.recorder.notices.size(), 1u);
}

}  // namespace
}  // namespace ferrite::train
