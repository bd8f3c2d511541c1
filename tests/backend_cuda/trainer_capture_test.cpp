// Trainers that replay their step as a graph: the weights, losses and norms of eager steps, bit for bit.
#include <cmath>

#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/nn/gpt.hpp"
#include "train/token_batch.hpp"
#include "train/train_test.hpp"

namespace ferrite::train {
namespace {

using testing::expect_error;
using testing::Recorder;
using testing::same_bits;
using testing::token_batch;

constexpr std::int64_t length = 32;

/// Every `odd`-th batch has fewer rows, unless it is 0.
struct Texts {
  std::int64_t odd = 0, length = train::length, dim = 64;
};

template <class B>
struct GptRun {
  B backend;
  Rng rng{7};
  nn::Gpt<B> model;
  optim::AdamW<B> optimizer;
  data::Generated source;
  Recorder recorder;
  Trainer<B> trainer;

  GptRun(B on, const TrainerConfig& config, double dropout, Texts texts = {})
      : backend(std::move(on)),
        model(backend,
              nn::GptConfig{}
                  .with_vocab(61)
                  .with_context(texts.length)
                  .with_layers(2)
                  .with_heads(2)
                  .with_dim(texts.dim)
                  .with_dropout(dropout),
              rng),
        optimizer(model.parameters(), optim::AdamWConfig{}
                                          .with_betas(0.9, 0.95)
                                          .with_weight_decay(0.1)
                                          .with_no_decay(optim::biases_and_norms)
                                          .with_clip_norm(0.5)),
        source("texts",
               [texts](std::int64_t number) {
                 const bool fewer = texts.odd > 0 && number % texts.odd == texts.odd - 1;
                 return std::optional(token_batch(number, fewer ? 2 : 4, texts.length));
               }),
        trainer(model, optimizer, source, language_model(model), config) {
    trainer.add_observer(recorder);
  }
};

TrainerConfig twenty_steps() {
  return TrainerConfig{}.with_steps(20).with_report_every(3).with_schedule(
      optim::Schedule::cosine(0.01, 20, 0.001).with_warmup(5));
}

template <class B>
void expect_same(GptRun<B>& a, GptRun<B>& b) {
  EXPECT_TRUE(same_bits(a.model.state(), b.model.state()));
  EXPECT_TRUE(same_bits(a.optimizer.state(), b.optimizer.state()));
  EXPECT_EQ(a.rng.position(), b.rng.position());
  ASSERT_EQ(a.recorder.progress.size(), b.recorder.progress.size());
  for (std::size_t i = 0; i < a.recorder.progress.size(); ++i) {
    EXPECT_EQ(a.recorder.progress[i].loss, b.recorder.progress[i].loss) << i;
    const double norms[] = {a.recorder.progress[i].gradient_norm, b.recorder.progress[i].gradient_norm};
    // That of a step that was left out is not a number.
    EXPECT_TRUE(norms[0] == norms[1] || (std::isnan(norms[0]) && std::isnan(norms[1])))
        << i << ": " << norms[0] << " and " << norms[1];
  }
  EXPECT_TRUE(b.recorder.notices.empty()) << b.recorder.notices[0];
}

template <class B>
void expect_graph_equal_to_eager(const std::function<B()>& backend) {
  for (const std::int64_t micro_batches : {1, 4}) {
    for (const double dropout : {0.0, 0.1}) {
      SCOPED_TRACE(std::to_string(micro_batches) + " micro-batches, dropout " + std::to_string(dropout));
      const auto config = twenty_steps().with_micro_batches(micro_batches);
      GptRun<B> eager(backend(), config, dropout), captured(backend(), config.with_capture(), dropout);
      eager.trainer.fit();
      captured.trainer.fit();
      expect_same(eager, captured);
    }
  }
}

class CudaTrainer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

TEST_F(CudaTrainer, GraphsGiveTheBitsOfEagerSteps) {
  using B = Autodiff<Cuda>;
  expect_graph_equal_to_eager<B>([] { return B(); });
}

TEST_F(CudaTrainer, InMixedPrecisionToo) {
  using B = Autodiff<Autocast<Cuda>>;
  expect_graph_equal_to_eager<B>([] { return B(); });
}

/// Attention over so many products is cuDNN's (dnn/attention_plans.cpp), as in a real training.
TEST_F(CudaTrainer, WithLongSequencesToo) {
  using B = Autodiff<Autocast<Cuda>>;
  const Texts texts{.length = 256, .dim = 128};
  const auto config = twenty_steps().with_micro_batches(2);
  GptRun<B> eager(B(), config, 0.1, texts), captured(B(), config.with_capture(), 0.1, texts);
  eager.trainer.fit();
  captured.trainer.fit();
  expect_same(eager, captured);
}

TEST_F(CudaTrainer, AResumedRunHasTheBitsOfOneThatWasNotInterrupted) {
  using B = Autodiff<Autocast<Cuda>>;
  const testing::ScratchFolder folder;
  const auto config = twenty_steps().with_micro_batches(2).with_capture();
  const Texts texts{.length = 256, .dim = 128};
  GptRun<B> whole(B(), config, 0.1, texts), first(B(), config, 0.1, texts), second(B(), config, 0.1, texts);
  whole.trainer.fit();
  first.trainer.advance(9);
  first.trainer.save(folder / "nine.safetensors");
  second.trainer.resume(folder / "nine.safetensors");
  second.trainer.fit();
  EXPECT_EQ(second.trainer.step(), 20);
  EXPECT_TRUE(same_bits(whole.model.state(), second.model.state()));
  EXPECT_TRUE(same_bits(whole.optimizer.state(), second.optimizer.state()));
}

/// The first scale is too large for f16: graphs leave the same updates out, and the scale follows.
TEST_F(CudaTrainer, InF16WithAScaledLossToo) {
  using B = Autodiff<Autocast<Cuda>>;
  const auto backend = [] { return B(Autocast<Cuda>(AutocastConfig{}.with_dtype(DType::f16))); };
  const auto scaler = optim::LossScalerConfig{}.with_initial(0x1p30).with_growth(2, 3);
  const auto config = twenty_steps().with_micro_batches(2).with_loss_scaler(scaler);
  GptRun<B> eager(backend(), config, 0.1), captured(backend(), config.with_capture(), 0.1);
  eager.trainer.fit();
  captured.trainer.fit();
  expect_same(eager, captured);
  const auto updates = captured.optimizer.state().at("steps").as<std::int64_t>()[0];
  EXPECT_GT(updates, 0);
  EXPECT_LT(updates, 20);
  EXPECT_LT(captured.optimizer.loss_scale(), 0x1p30);
  for (std::size_t i = 0; i < eager.recorder.progress.size(); ++i)
    EXPECT_EQ(eager.recorder.progress[i].loss_scale, captured.recorder.progress[i].loss_scale) << i;
}

TEST_F(CudaTrainer, OnABackendByNameToo) {
  using B = Autodiff<AnyBackend>;
  expect_graph_equal_to_eager<B>([] { return B("cuda"); });
}

TEST_F(CudaTrainer, InMixedPrecisionOnABackendByName) {
  using B = Autodiff<Autocast<AnyBackend>>;
  const auto config = twenty_steps().with_micro_batches(2);
  GptRun<B> eager(B("cuda"), config, 0.1), captured(B("cuda"), config.with_capture(), 0.1);
  eager.trainer.fit();
  captured.trainer.fit();
  expect_same(eager, captured);
}

TEST_F(CudaTrainer, BatchesOfAnotherShapeEvaluationsAndLoadedWeightsChangeNothing) {
  using B = Autodiff<Autocast<Cuda>>;
  const auto train = [](GptRun<B>& run) {
    data::Generated valid(
        "texts", [](std::int64_t number) { return std::optional(token_batch(1000 + number, 4, length)); });
    run.trainer.validate_on(valid, 2);
    run.trainer.advance(8);
    NamedTensors halved;  // the host writes to parameters between two replays
    for (const auto& [name, tensor] : run.model.state()) {
      std::vector<float> values;
      for (const float value : tensor.as<float>()) values.push_back(value / 2);
      halved.emplace(name, HostTensor::from(std::span<const float>(values), tensor.shape()));
    }
    run.model.load_state(halved);
    run.trainer.fit();
  };
  const auto config = twenty_steps().with_evaluate_every(5);
  for (const int kinds : {1, 2}) {
    SCOPED_TRACE(std::to_string(kinds) + " kinds of batches are recorded");
    GptRun<B> eager(B(), config, 0.1, {.odd = 4}),
        captured(B(), config.with_capture().with_recorded_kinds(kinds), 0.1, {.odd = 4});
    train(eager);
    train(captured);
    expect_same(eager, captured);
    ASSERT_EQ(eager.recorder.evaluations.size(), captured.recorder.evaluations.size());
    for (std::size_t i = 0; i < eager.recorder.evaluations.size(); ++i)
      EXPECT_EQ(eager.recorder.evaluations[i].second["loss"],
                captured.recorder.evaluations[i].second["loss"]);
  }
}

TEST_F(CudaTrainer, RunningStatisticsGoOnInsideTheGraph) {
  using B = Autodiff<Cuda>;
  const auto train = [](const TrainerConfig& config, double dropout, std::int64_t rows) {
    B backend;
    nn::Sequential<B> net = testing::points_net(backend, 1, dropout);
    optim::AdamW<B> optimizer(net.parameters());
    data::DataLoader loader(testing::points(100, 5), data::LoaderConfig{}.with_batch_size(rows));
    Trainer<B> trainer(net, optimizer, loader, supervised(net, testing::cross_entropy), config);
    trainer.fit();
    return net.state();
  };
  for (const double dropout : {0.0, 0.1}) {
    for (const std::int64_t rows : {10, 8}) {  // of 100: the last batch is as large as the others, or smaller
      SCOPED_TRACE("dropout " + std::to_string(dropout) + ", batches of " + std::to_string(rows));
      const NamedTensors eager = train(twenty_steps(), dropout, rows);
      EXPECT_TRUE(same_bits(eager, train(twenty_steps(), dropout, rows)));
      EXPECT_TRUE(same_bits(eager, train(twenty_steps().with_capture(), dropout, rows)));
    }
  }
}

TEST_F(CudaTrainer, AStepThatReadsTheHostIsNamedOrRunsEagerly) {
  using B = Autodiff<Cuda>;
  const auto train = [](Capture capture) {
    B backend;
    nn::Sequential<B> net = testing::points_net(backend, 1, 0.0);
    optim::AdamW<B> optimizer(net.parameters());
    data::DataLoader loader(testing::points(100, 5), data::LoaderConfig{}.with_batch_size(10));
    const StepFunction<B> step = [&](const data::Batch<B>& batch) {
      const Tensor<B> logits = net.forward(batch.x), loss = softmax_cross_entropy(logits, batch.y);
      static_cast<void>(loss.item());
      return Prediction<B>{loss, logits};
    };
    Trainer<B> trainer(net, optimizer, loader, step, twenty_steps().with_capture(capture));
    trainer.fit();
    return trainer.notices();
  };
  expect_error<BackendError>([&] { train(Capture::required); }, {"cannot be recorded", "capture"});
  EXPECT_EQ(train(Capture::if_possible).size(), 1u);
}

}  // namespace
}  // namespace ferrite::train
