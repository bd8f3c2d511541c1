// An op of one's own: mish(x) = x tanh(log(1 + exp(x))). Its shape rule, its composition and its gradient
// stand in one struct, and from then on it runs on every backend, differentiates, and can be profiled and
// compared. A backend that wants to be fast at it adds `void run(const Mish&, Ins, Outs)`; nothing else
// changes.
#include "common.hpp"

using namespace ferrite;

struct Mish {
  static constexpr std::string_view type_name = "mish";

  Metas infer(MetaSpan in) const {
    detail::check_arity(type_name, in.size(), 1, 1);
    detail::check_floating(type_name, "x", in[0].dtype);
    return {in[0]};
  }
  static void attributes(auto&, auto&&) {}

  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[0] * tanh(softplus(in[0]))};
  }

  /// d/dx = tanh(s) + x (1 - tanh(s)^2) sigmoid(x) with s = log(1 + exp(x)); x is kept for it.
  Saves saves() const { return {.inputs = 1u, .outputs = 0u}; }
  template <class B>
  void vjp(Vjp<B>& v) const {
    const Tensor<B> x = v.input(0), t = tanh(softplus(x));
    v.add(0, v.grad() * (t + x * (1 - t * t) * sigmoid(x)));
  }
};

template <class B>
Tensor<B> mish(const Tensor<B>& x) {
  return eval(Mish{}, x);
}

template <class B>
void show(B& backend, const examples::Options& options) {
  Rng rng(options.seed);
  const auto x = parameter(randn(backend, {5}, rng, 0, 2, DType::f64), "x");
  const auto own = sum(mish(x)).backward().of(x);
  const auto composed = sum(x * tanh(softplus(x))).backward().of(x);
  std::printf("mish(x)            = %s\n", to_string(mish(x)).c_str());
  std::printf("its own gradient   = %s\n", to_string(own).c_str());
  std::printf("by the composition = %s\n", to_string(composed).c_str());

  // As a layer: a net that learns |x|.
  nn::Sequential<B> net;
  net.add(nn::Linear<B>(backend, {1, 16}, rng))
      .add(nn::Apply<B>(mish<B>))
      .add(nn::Linear<B>(backend, {16, 1}, rng));
  optim::Adam<B> optimizer(net.parameters(), optim::AdamConfig{}.with_lr(0.02));
  double loss_value = 0;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto inputs = rand(backend, {64, 1}, rng, -2, 2);
    const auto loss = mse_loss(net.forward(inputs), abs(inputs));
    optimizer.step(loss.backward());
    loss_value = item(loss);
  }
  std::printf("mean squared error of a mish net on |x| after %lld steps: %.4f\n",
              static_cast<long long>(options.steps), loss_value);
}

int main(int argc, char** argv) {
  return examples::run(argc, argv, "An op of one's own", {}, [](auto& b, const auto& o) { show(b, o); });
}
