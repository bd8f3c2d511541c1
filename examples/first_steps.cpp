// First steps: tensors, views, broadcasting, gradients, and a straight line fitted by hand.
#include "common.hpp"
#include "ferrite/ferrite.hpp"

using namespace ferrite;

template <class B>
void tour(B& backend, const examples::Options& options) {
  const auto x = reshape(arange(backend, 6, DType::f32), {2, 3});
  std::printf("x =\n%s\n", to_string(x).c_str());
  std::printf("x + row =\n%s\n", to_string(x + from_vector(backend, std::vector<float>{10, 20, 30})).c_str());
  std::printf("column sums of x, last column first = %s\n", to_string(flip(sum(x, {0}))).c_str());
  std::printf("x @ x^T =\n%s\n", to_string(matmul(x, transpose(x, 0, 1))).c_str());

  const auto w = parameter(scalar(backend, 3.0), "w");
  const auto y = w * w * sin(w);
  std::printf("d/dw w^2 sin(w) at 3 = %.6f\n", y.backward().of(w).item());

  // Points on y = 2 x - 1 with noise, and the least-squares line through them by gradient descent.
  Rng rng(options.seed);
  const auto inputs = rand(backend, {200, 1}, rng, -1, 1);
  const auto targets = inputs * 2 - 1 + randn(backend, {200, 1}, rng, 0, 0.1);
  nn::Linear<B> line(backend, {1, 1}, rng);
  optim::Sgd<B> optimizer(line.parameters(), optim::SgdConfig{}.with_lr(0.1).with_momentum(0.9));
  for (std::int64_t step = 0; step < options.steps; ++step)
    optimizer.step(mse_loss(line.forward(inputs), targets).backward());
  std::printf("fitted after %lld steps: y = %.3f x %+.3f\n", static_cast<long long>(options.steps),
              line.weight.item(), line.bias.item());
}

int main(int argc, char** argv) {
  return examples::run(argc, argv, "First steps with ferrite", {}, tour<examples::Backend>);
}
