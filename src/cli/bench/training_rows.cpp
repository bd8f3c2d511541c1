// Whole training steps: forward, backward and AdamW, without the host reading the loss.
#include "cli/bench/rows.hpp"
#include "ferrite/nn/conv.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/nn/sequential.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/train/stacks.hpp"

namespace ferrite::cli::bench {

namespace {

using B = Autodiff<AnyBackend>;

/// What a step keeps from one call to the next.
struct Training {
  B backend;
  nn::Sequential<B> net;
  Tensor<B> x, y;
  std::unique_ptr<optim::AdamW<B>> optimizer;

  explicit Training(const AnyBackend& any) : backend(any) {}
  void step() { optimizer->step(softmax_cross_entropy(net.forward(x), y).backward()); }
};

std::function<void()> steps(std::shared_ptr<Training> training) {
  training->optimizer =
      std::make_unique<optim::AdamW<B>>(training->net.parameters(), optim::AdamWConfig{}.with_lr(1e-3));
  return [training] { training->step(); };
}

std::function<void()> mlp(AnyBackend& any) {
  auto t = std::make_shared<Training>(any);
  Rng rng(1);
  t->net.add(nn::Linear<B>(t->backend, nn::LinearConfig{784, 512}.with_activation(Activation::relu), rng));
  t->net.add(nn::Linear<B>(t->backend, nn::LinearConfig{512, 512}.with_activation(Activation::relu), rng));
  t->net.add(nn::Linear<B>(t->backend, nn::LinearConfig{512, 10}, rng));
  t->x = randn(t->backend, {128, 784}, rng);
  t->y = randint(t->backend, {128}, rng, 0, 10);
  return steps(std::move(t));
}

std::function<void()> cnn(AnyBackend& any) {
  auto t = std::make_shared<Training>(any);
  Rng rng(1);
  t->net.add(nn::Conv2d<B>(t->backend, nn::Conv2dConfig{1, 16, 3}.with_padding(1), rng))
      .add(Activation::relu);
  t->net.add(nn::MaxPool2d<B>(PoolConfig(2)));
  t->net.add(nn::Conv2d<B>(t->backend, nn::Conv2dConfig{16, 32, 3}.with_padding(1), rng))
      .add(Activation::relu);
  t->net.add(nn::MaxPool2d<B>(PoolConfig(2))).add(nn::Flatten<B>());
  t->net.add(nn::Linear<B>(t->backend, nn::LinearConfig{128, 64}.with_activation(Activation::relu), rng));
  t->net.add(nn::Linear<B>(t->backend, nn::LinearConfig{64, 10}, rng));
  t->x = randn(t->backend, {64, 1, 8, 8}, rng);
  t->y = randint(t->backend, {64}, rng, 0, 10);
  return steps(std::move(t));
}

/// Operations of a step by its products alone: each layer once forward and twice backward, but the first has
/// no gradient of its input.
double products(std::initializer_list<double> layers) {
  double flops = 0;
  for (const double& layer : layers) flops += 2 * layer * (&layer == layers.begin() ? 2 : 3);
  return flops;
}

}  // namespace

void add_training_rows(std::vector<Row>& rows) {
  const auto add = [&](const char* name, const char* size, double flops, auto make) {
    rows.push_back({name, "f32", size, Bound::flops, {flops, 0}, 0, {}, {}, make});
  };
  add("train_mlp", "batch128", 128 * products({784 * 512, 512 * 512, 512 * 10}), mlp);
  add("train_cnn", "batch64", 64 * products({8 * 8 * 16 * 9, 4 * 4 * 32 * 16 * 9, 128 * 64, 64 * 10}), cnn);
}

}  // namespace ferrite::cli::bench
