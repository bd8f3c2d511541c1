// One step of AdamW, and the norm of all gradients, over the matrices of GPT-2 small: 124M parameters.
#include "ferrite/optim/adam.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

std::vector<Shape> gpt2_matrices() {
  std::vector<Shape> shapes{{50304, 768}, {1024, 768}};
  for (int block = 0; block < 12; ++block)
    for (const Shape& s : {Shape{2304, 768}, Shape{768, 768}, Shape{3072, 768}, Shape{768, 3072}})
      shapes.push_back(s);
  return shapes;
}

Measurement adamw() {
  using B = Autodiff<Cuda>;
  B b;
  Rng rng(1);
  std::vector<nn::NamedParameter<B>> parameters;
  Gradients<Cuda> gradients;
  double count = 0;
  for (const Shape& shape : gpt2_matrices()) {
    const std::string name = "p" + std::to_string(parameters.size());
    parameters.push_back({name, parameter(randn(b, shape, rng), name)});
    gradients.set(parameters.back().tensor, randn(b.inner(), shape, rng));
    count += static_cast<double>(shape.numel());
  }
  optim::AdamW<B> optimizer(parameters, optim::AdamWConfig{}.with_lr(1e-3));
  Measurement m = time_calls(b.inner(), [&] { optimizer.step(gradients); });
  m.bytes = 7 * 4 * count;  // reads parameter, gradient and two moments, writes all but the gradient
  return m;
}

}  // namespace

void add_optimizer(Suite& suite) {
  suite.add("adamw/f32/124M", adamw);
  suite.add_op("global_norm/f32/124M", op::GlobalNorm{}, [](auto& b, Rng& rng) {
    std::vector<decltype(randn(b, {}, rng))> gradients;
    for (const Shape& shape : gpt2_matrices()) gradients.push_back(randn(b, shape, rng));
    return gradients;
  });
}

}  // namespace ferrite::bench
