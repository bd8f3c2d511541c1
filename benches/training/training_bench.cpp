// Whole training steps: forward, backward, optimiser. The same three models are measured with PyTorch by
// benches/peers/torch_training.py.
#include <benchmark/benchmark.h>

#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/transformer.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using B = Autodiff<Cpu>;

template <class Forward>
void train(benchmark::State& state, nn::Module<B>& model, Forward forward) {
  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(1e-3));
  for (auto _ : state) {
    const Tensor<B> loss = forward();
    optimizer.step(loss.backward());
    benchmark::DoNotOptimize(loss.item());
  }
}

void mlp(benchmark::State& state) {
  B b;
  Rng rng(1);
  nn::Sequential<B> net;
  net.add(nn::Linear<B>(b, nn::LinearConfig{784, 512}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(b, nn::LinearConfig{512, 512}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(b, nn::LinearConfig{512, 10}, rng));
  const auto x = randn(b, {128, 784}, rng), y = randint(b, {128}, rng, 0, 10);
  train(state, net, [&] { return softmax_cross_entropy(net.forward(x), y); });
}
BENCHMARK(mlp)->Name("train/mlp_784_512_512_10_batch128")->Unit(benchmark::kMicrosecond);

void digits(benchmark::State& state) {
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
  train(state, net, [&] { return softmax_cross_entropy(net.forward(x), y); });
}
BENCHMARK(digits)->Name("train/digits_cnn_batch64")->Unit(benchmark::kMicrosecond);

void transformer_block(benchmark::State& state) {
  B b;
  Rng rng(1);
  nn::TransformerBlock<B> block(b, nn::TransformerBlockConfig{256, 8}.with_causal(true), rng);
  const auto x = randn(b, {8, 128, 256}, rng);
  train(state, block, [&] { return mean(square(block.forward(x))); });
}
BENCHMARK(transformer_block)->Name("train/transformer_block_B8_T128_C256")->Unit(benchmark::kMicrosecond);

/// The overhead of one op on eight elements: typed, through AnyBackend, and recorded and differentiated.
template <class Backend>
void add_small(benchmark::State& state, Backend b) {
  Rng rng(1);
  const auto x = randn(b, {8}, rng), y = randn(b, {8}, rng);
  for (auto _ : state) benchmark::DoNotOptimize(x + y);
}
void add_small_typed(benchmark::State& state) { add_small(state, Cpu()); }
BENCHMARK(add_small_typed)->Name("overhead/add_8_elements");
void add_small_by_name(benchmark::State& state) { add_small(state, AnyBackend("cpu")); }
BENCHMARK(add_small_by_name)->Name("overhead/add_8_elements_any_backend");

void add_small_with_gradient(benchmark::State& state) {
  B b;
  Rng rng(1);
  const auto x = parameter(randn(b, {8}, rng), "x"), y = randn(b, {8}, rng);
  const auto root = ones(b.inner(), {8});
  const auto config = BackwardConfig<Cpu>{}.with_root(root);
  for (auto _ : state) benchmark::DoNotOptimize(backward(x + y, config));
}
BENCHMARK(add_small_with_gradient)->Name("overhead/add_8_elements_with_backward");

}  // namespace
}  // namespace ferrite
