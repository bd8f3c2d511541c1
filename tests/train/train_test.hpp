// A small problem that the tests of training share: two classes of points, a net with dropout and running
// statistics, so that every kind of state is there.
#pragma once

#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/norm.hpp"
#include "ferrite/nn/sequential.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/optim/sgd.hpp"
#include "ferrite/train/trainer.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::testing {

/// Images [rows, 1, 2, 2]; the class is whether the upper half is brighter.
inline data::Dataset points(std::int64_t rows, std::uint64_t seed) {
  Reference backend;
  Rng rng(seed);
  const auto x = randn(backend, {rows, 4}, rng);
  const auto upper = sum(slice(x, 1, 0, 2), {1}), lower = sum(slice(x, 1, 2, 4), {1});
  return data::Dataset(x, cast(upper > lower, DType::i64)).with_row_shape({1, 2, 2});
}

template <class B>
nn::Sequential<B> points_net(B& backend, std::uint64_t seed, double dropout = 0.1) {
  Rng rng(seed);
  nn::Sequential<B> net;
  net.add("conv", nn::Conv2d<B>(backend, nn::Conv2dConfig{1, 4, 2}, rng));
  net.add("norm", nn::BatchNorm2d<B>(backend, {4})).add(Activation::relu).add(nn::Flatten<B>());
  net.add("dropout", nn::Dropout<B>(dropout, rng));
  net.add("head", nn::Linear<B>(backend, {4, 2}, rng));
  return net;
}

inline constexpr auto cross_entropy = [](const auto& logits, const auto& y) {
  return softmax_cross_entropy(logits, y);
};

/// Keeps all it hears.
struct Recorder final : train::Observer {
  std::vector<train::Progress> progress;
  std::vector<std::pair<std::int64_t, train::Evaluation>> evaluations;
  std::vector<std::filesystem::path> checkpoints;
  std::vector<std::string> notices;
  int finished = 0;
  void on_progress(const train::Progress& p) override { progress.push_back(p); }
  void on_evaluation(std::int64_t step, const train::Evaluation& e) override {
    evaluations.emplace_back(step, e);
  }
  void on_checkpoint(std::int64_t, const std::filesystem::path& p) override { checkpoints.push_back(p); }
  void on_notice(const std::string& text) override { notices.push_back(text); }
  void on_finish() override { ++finished; }
};

inline train::TrainerConfig warm_cosine(std::int64_t steps) {
  return train::TrainerConfig{}.with_steps(steps).with_schedule(
      optim::Schedule::cosine(0.05, 40).with_warmup(5));
}

/// Everything one run needs, made afresh as after a restart of the program.
struct PointsRun {
  using B = Autodiff<AnyBackend>;
  B backend;
  nn::Sequential<B> net;
  optim::AdamW<B> optimizer;
  data::DataLoader loader;
  Rng noise{42};
  train::Trainer<B> trainer;

  PointsRun(const char* name, const train::TrainerConfig& config, std::uint64_t seed = 1)
      : backend(name),
        net(points_net(backend, seed)),
        optimizer(net.parameters(),
                  optim::AdamWConfig{}.with_clip_norm(1).with_no_decay(optim::biases_and_norms)),
        loader(points(100, 5), data::LoaderConfig{}.with_batch_size(8).with_seed(seed)),
        trainer(net, optimizer, loader, step(), config) {
    trainer.add_rng("noise", noise);
  }
  /// Training on noisy images, so that the step function has a generator of its own.
  train::StepFunction<B> step() {
    return [this](const data::Batch<B>& batch) {
      const Tensor<B> x = batch.x + randn(backend, batch.x.shape(), noise, 0, 0.1);
      const Tensor<B> logits = net.forward(x);
      return train::Prediction<B>{softmax_cross_entropy(logits, batch.y), logits};
    };
  }
};

inline bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && std::ranges::equal(x.second.bytes(), y.second.bytes());
  });
}

}  // namespace ferrite::testing
