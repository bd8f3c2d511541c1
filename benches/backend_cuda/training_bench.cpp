// Whole training steps, forward, backward and AdamW, eager and as a captured graph: the models of
// benches/training/training_bench.cpp. Steps follow each other without the host reading the loss.
#include "ferrite/backend/cuda_graph.hpp"
#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/transformer.hpp"
#include "ferrite/optim/adam.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

using B = Autodiff<Cuda>;
enum class Mode : std::uint8_t { eager, graph };

template <class Forward>
Measurement train(B& b, nn::Module<B>& model, const Forward& forward, Mode mode) {
  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(1e-3));
  Tensor<B> loss;
  const auto step = [&] {
    loss = forward();
    optimizer.step(loss.backward());
  };
  if (mode == Mode::eager) return time_calls(b.inner(), step, Clock::wall);
  optimizer.keep_schedule_on_device();
  for (int i = 0; i < 3; ++i) step();
  CudaGraph graph = CudaGraph::capture(b.inner(), step);
  return time_calls(
      b.inner(), [&] { graph.replay(); }, Clock::wall);
}

Measurement mlp(Mode mode) {
  B b;
  Rng rng(1);
  nn::Sequential<B> net;
  net.add(nn::Linear<B>(b, nn::LinearConfig{784, 512}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(b, nn::LinearConfig{512, 512}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(b, nn::LinearConfig{512, 10}, rng));
  const auto x = randn(b, {128, 784}, rng), y = randint(b, {128}, rng, 0, 10);
  return train(
      b, net, [&] { return softmax_cross_entropy(net.forward(x), y); }, mode);
}

Measurement digits(Mode mode) {
  B b;
  Rng rng(1);
  nn::Sequential<B> net;
  net.add(nn::Conv2d<B>(b, nn::Conv2dConfig{1, 16, 3}.with_padding(1), rng)).add(Activation::relu);
  net.add(nn::MaxPool2d<B>(PoolConfig(2)));
  net.add(nn::Conv2d<B>(b, nn::Conv2dConfig{16, 32, 3}.with_padding(1), rng)).add(Activation::relu);
  net.add(nn::MaxPool2d<B>(PoolConfig(2))).add(nn::Flatten<B>());
  net.add(nn::Linear<B>(b, nn::LinearConfig{128, 64}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(b, nn::LinearConfig{64, 10}, rng));
  const auto x = randn(b, {64, 1, 8, 8}, rng), y = randint(b, {64}, rng, 0, 10);
  return train(
      b, net, [&] { return softmax_cross_entropy(net.forward(x), y); }, mode);
}

Measurement transformer_block(Mode mode) {
  B b;
  Rng rng(1);
  nn::TransformerBlock<B> block(b, nn::TransformerBlockConfig{256, 8}.with_causal(true), rng);
  const auto x = randn(b, {8, 128, 256}, rng);
  return train(
      b, block, [&] { return mean(square(block.forward(x))); }, mode);
}

}  // namespace

void add_training(Suite& suite) {
  const std::pair<const char*, Measurement (*)(Mode)> models[] = {
      {"mlp_784_512_512_10_batch128", mlp},
      {"digits_cnn_batch64", digits},
      {"transformer_block_B8_T128_C256", transformer_block}};
  for (const auto& [name, model] : models) {
    const auto measure = model;
    suite.add(std::string("train/") + name, [measure] { return measure(Mode::eager); });
    suite.add(std::string("train_graph/") + name, [measure] { return measure(Mode::graph); });
  }
}

}  // namespace ferrite::bench
