// Mixed precision on the GPU: a transformer block trains, a captured step gives the bits of an eager one and
// makes no casts of parameters, and a state that is loaded between two replays reaches the 16-bit copies.
#include "ferrite/decorators/autocast.hpp"

#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/nn/transformer.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Mixed = Autodiff<Autocast<Cuda>>;

class CudaAutocast : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

struct MixedTraining {
  Mixed backend;
  Rng rng{7};
  nn::Embedding<Mixed> tokens{backend, {50, 64}, rng};
  nn::TransformerBlock<Mixed> block{backend, nn::TransformerBlockConfig{64, 2}.with_causal(true), rng};
  nn::LayerNorm<Mixed> norm{backend, nn::NormConfig{64}};
  std::vector<nn::NamedParameter<Mixed>> parameters = all_parameters();
  optim::AdamW<Mixed> optimizer{parameters, optim::AdamWConfig{}.with_lr(1e-3).with_clip_norm(1)};
  Tensor<Mixed> ids = zeros(backend, {4, 128}, DType::i64), targets = zeros(backend, {4, 128}, DType::i64);
  Tensor<Mixed> loss;

  MixedTraining() { optimizer.keep_schedule_on_device(); }

  std::vector<nn::NamedParameter<Mixed>> all_parameters() {
    std::vector<nn::NamedParameter<Mixed>> all;
    const auto add = [&](const std::string& name, nn::Module<Mixed>& module) {
      for (auto p : module.parameters()) {
        p.name = name + "." + p.name;
        all.push_back(p);
      }
    };
    add("tokens", tokens);
    add("block", block);
    add("norm", norm);
    return all;
  }
  void load(int step) {
    Rng data(static_cast<std::uint64_t>(100 + step));
    Reference host;
    const auto some = randint(host, {4, 128}, data, 0, 50);
    assign(ids, to_host(some));
    assign(targets, to_host(49 - some));  // another token for each
  }
  void step() {
    const auto features = norm.forward(block.forward(tokens.forward(ids)));
    loss = softmax_cross_entropy(linear(features, tokens.weight), targets);
    optimizer.step(loss.backward());
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (const auto& p : parameters)
      for (const float w : p.tensor.to_vector()) all.push_back(w);
    return all;
  }
  Cuda& cuda() { return backend.inner().inner(); }
};

TEST_F(CudaAutocast, TrainsABlock) {
  MixedTraining training;
  training.load(0);
  training.step();
  const float first = training.loss.item();
  for (int i = 1; i < 60; ++i) {
    training.load(i);
    training.step();
  }
  EXPECT_LT(training.loss.item(), 0.7f * first);
  for (const auto& p : training.parameters) EXPECT_EQ(p.tensor.dtype(), DType::f32) << p.name;
}

TEST_F(CudaAutocast, ReplaysGiveTheBitsOfEagerSteps) {
  MixedTraining eager, captured;
  for (int i = 0; i < 10; ++i) {
    eager.load(i);
    eager.step();
    if (i < 2) {
      captured.load(i);
      captured.step();
    }
  }
  captured.load(2);
  auto graph = CudaGraph::capture(captured.cuda(), [&] { captured.step(); });
  for (int i = 2; i < 10; ++i) {
    captured.load(i);
    graph.replay();
  }
  EXPECT_EQ(captured.weights(), eager.weights());

  // A write by the host: both go on from it.
  for (MixedTraining* t : {&eager, &captured}) {
    assign(t->tokens.weight, to_host(t->tokens.weight * 0.5));
    t->backend.inner().refresh();
    t->load(11);
  }
  eager.step();
  graph.replay();
  EXPECT_EQ(captured.weights(), eager.weights());
}

}  // namespace
}  // namespace ferrite
