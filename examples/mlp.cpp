// A multi-layer perceptron on the Wisconsin breast cancer set: standardised features, a training loop written
// out, and the trained weights moved to a backend that does not differentiate.
#include "common.hpp"
#include "ferrite/ferrite.hpp"

using namespace ferrite;

template <class B>
nn::Sequential<B> make_net(B& backend, Rng& rng) {
  nn::Sequential<B> net;
  net.add(nn::Linear<B>(backend, nn::LinearConfig{30, 32}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(backend, nn::LinearConfig{32, 16}.with_activation(Activation::relu), rng));
  net.add(nn::Linear<B>(backend, {16, 2}, rng));
  return net;
}

template <class B>
double accuracy(nn::Sequential<B>& net, B& backend, const data::Dataset& dataset) {
  const auto [x, y] = data::to_batch(backend, dataset.all());
  return mean(cast(argmax(net.forward(x)) == y, DType::f32)).item();
}

template <class B>
void learn(B& backend, const examples::Options& options) {
  const auto all = data::Dataset::from_csv(examples::data_file("breast_cancer.csv"));
  auto [training, test] = all.split(0.8, options.seed);
  const auto standardizer = data::Standardizer::fit(training.x());
  test = standardizer.apply(test);
  data::DataLoader loader(standardizer.apply(training),
                          data::LoaderConfig{}.with_batch_size(32).with_seed(options.seed));

  Rng rng(options.seed);
  auto net = make_net(backend, rng);
  std::printf("%lld parameters on %s\n", static_cast<long long>(net.parameter_count()),
              backend.describe().c_str());
  optim::AdamW<B> optimizer(net.parameters(), optim::AdamWConfig{}.with_no_decay(optim::biases_and_norms));
  const auto schedule = optim::Schedule::cosine(3e-3, options.steps).with_warmup(options.steps / 10);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto [x, y] = data::to_batch(backend, loader.next());
    const auto loss = softmax_cross_entropy(net.forward(x), y);
    optimizer.set_learning_rate(schedule.at(step));
    optimizer.step(loss.backward());
    if ((step + 1) % 50 == 0 || step + 1 == options.steps)
      std::printf("step %4lld  loss %.4f\n", static_cast<long long>(step + 1), loss.item());
  }

  auto served = make_net(backend.inner(), rng);
  served.load_state(net.state());
  std::printf("test accuracy %.2f %%\n", 100 * accuracy(served, backend.inner(), test));
}

int main(int argc, char** argv) {
  examples::Options options;
  options.steps = 300;
  return examples::run(argc, argv, "A multi-layer perceptron on the breast cancer set", options,
                       learn<examples::Backend>);
}
