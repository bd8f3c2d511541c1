// The demo: a small convolutional net learns to read handwritten digits, with a progress bar, evaluations
// and, on the cpu backend, the five slowest ops.
#include <chrono>

#include "common.hpp"
#include "ferrite/ferrite.hpp"

using namespace ferrite;

template <class B>
nn::Sequential<B> make_net(B& backend, Rng& rng) {
  const auto conv = [&](std::int64_t in, std::int64_t out) {
    return nn::Conv2d<B>(backend, nn::Conv2dConfig{in, out, 3}.with_padding(1).with_bias(false), rng);
  };
  nn::Sequential<B> net;
  net.add(conv(1, 16)).add(nn::BatchNorm2d<B>(backend, {16})).add(Activation::relu);
  net.add(conv(16, 32)).add(nn::BatchNorm2d<B>(backend, {32})).add(Activation::relu);
  net.add(nn::MaxPool2d<B>(PoolConfig(2))).add(nn::Flatten<B>()).add(nn::Dropout<B>(0.25, rng));
  net.add(nn::Linear<B>(backend, nn::LinearConfig{512, 64}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(backend, {64, 10}, rng));
  return net;
}

template <class B>
void learn(B& backend, const examples::Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto all = data::Dataset::from_csv(examples::data_file("digits.csv"));
  const auto [training, test] = all.with_row_shape({1, 8, 8}).split(0.8, options.seed);
  data::DataLoader loader(training, data::LoaderConfig{}.with_batch_size(64).with_seed(options.seed));
  Rng rng(options.seed);
  auto net = make_net(backend, rng);
  std::printf("%lld digits to learn from, %lld to test on; %lld parameters on %s\n",
              static_cast<long long>(training.size()), static_cast<long long>(test.size()),
              static_cast<long long>(net.parameter_count()), backend.describe().c_str());

  optim::AdamW<B> optimizer(net.parameters(), optim::AdamWConfig{}.with_no_decay(optim::biases_and_norms));
  const auto step = [&](const data::Batch<B>& batch) {
    const auto logits = net.forward(batch.x * (1.0 / 16));
    return train::Prediction<B>{softmax_cross_entropy(logits, batch.y), logits};
  };
  train::Trainer<B> trainer(
      net, optimizer, loader, step,
      train::TrainerConfig{}
          .with_steps(options.steps)
          .with_evaluate_every(100)
          .with_schedule(optim::Schedule::cosine(4e-3, options.steps).with_warmup(options.steps / 20)));
  train::ProgressBar bar;
  trainer.add_observer(bar);
  trainer.add_metric(std::make_unique<train::Accuracy<B>>());
  trainer.validate_on(test);
  trainer.fit();

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("test accuracy %.2f %% after %lld steps in %.1f s\n", 100 * trainer.evaluate(test)["accuracy"],
              static_cast<long long>(options.steps), seconds);
  if (const auto profile = backend.inner().profile()) std::printf("\n%s", table(*profile, 5).c_str());
}

int main(int argc, char** argv) {
  examples::Options options;
  options.steps = 460;
  return examples::run(argc, argv, "A convolutional net on handwritten digits", options,
                       learn<examples::Backend>);
}
