// Random calls of the ops with kernels, forward and backward, on any backend.
#pragma once

#include <functional>
#include <random>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/linear_cross_entropy.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {

/// What the next call looks like: sizes, scales and data follow from the seed alone.
class Draw {
 public:
  /// With `plain`, all data are standard normal numbers, and no axis is so short that gradients vanish.
  Draw(std::uint64_t seed, DType of, bool plain = false)
      : dtype(of), rng(seed), plain_(plain), random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool coin() { return between(0, 1) == 1; }
  std::int64_t shortest() const { return plain_ ? 2 : 1; }
  /// Mostly small; now and then 1, and now and then a few blocks of a kernel.
  std::int64_t size() {
    const std::int64_t kind = between(0, 9);
    return kind == 0 ? shortest() : kind == 1 ? between(100, 300) : between(2, 40);
  }
  /// Normal numbers with an offset and a spread of many sizes.
  template <class B>
  Tensor<B> tensor(B& b, const Shape& shape) {
    if (plain_) return randn(b, shape, rng, 0, 1, dtype);
    const double offset = between(0, 3) == 0 ? static_cast<double>(between(-20, 20)) : 0;
    const double spread = between(0, 3) == 0 ? std::pow(10.0, static_cast<double>(between(-3, 2))) : 1;
    return randn(b, shape, rng, offset, spread, dtype);
  }
  template <class B>
  Tensor<B> leaf(B& b, const Shape& shape) {
    return parameter(tensor(b, shape), "x" + std::to_string(leaves_++));
  }

  DType dtype;
  Rng rng;

 private:
  bool plain_;
  std::mt19937_64 random_;
  int leaves_ = 0;
};

/// The result of one random call; what it differentiates are leaves of the draw.
template <class B>
using RandomCall = std::function<Tensor<B>(B&, Draw&)>;

template <class B>
std::vector<std::pair<std::string, RandomCall<B>>> random_calls() {
  using T = Tensor<B>;
  const auto rows = [](Draw& d) { return Shape{d.size(), d.size()}; };
  const auto image = [](Draw& d) {
    return Shape{d.between(1, 3), d.between(1, 4), d.between(4, 12), d.between(4, 12)};
  };
  const auto gates = std::vector<Activation>{Activation::none, Activation::relu, Activation::silu};
  return {
      {"softmax", [=](B& b, Draw& d) { return softmax(d.leaf(b, rows(d)), d.coin() ? -1 : 0); }},
      {"log_softmax", [=](B& b, Draw& d) { return log_softmax(d.leaf(b, rows(d)), d.coin() ? -1 : 0); }},
      {"layer_norm",
       [=](B& b, Draw& d) {
         const Shape s = rows(d);
         return layer_norm(d.leaf(b, s), d.leaf(b, {s[1]}), d.leaf(b, {s[1]}));
       }},
      {"rms_norm",
       [=](B& b, Draw& d) {
         const Shape s = rows(d);
         return rms_norm(d.leaf(b, s), d.leaf(b, {s[1]}));
       }},
      {"batch_norm",
       [=](B& b, Draw& d) {
         const Shape s = image(d);
         return batch_norm(d.leaf(b, s), d.leaf(b, {s[1]}), d.leaf(b, {s[1]})).y;
       }},
      {"matmul",
       [](B& b, Draw& d) {
         const std::int64_t n = d.size(), k = d.size(), m = d.size();
         return matmul(d.leaf(b, {n, k}), d.leaf(b, {k, m}));
       }},
      {"linear",
       [=](B& b, Draw& d) {
         const std::int64_t n = d.size(), k = d.size(), m = d.size();
         return linear(d.leaf(b, {n, k}), d.leaf(b, {m, k}), d.leaf(b, {m}),
                       gates[static_cast<std::size_t>(d.between(0, 2))]);
       }},
      {"attention",
       [](B& b, Draw& d) {
         const std::int64_t n = d.between(1, 2), h = d.between(1, 3), l = d.between(d.shortest(), 40),
                            e = d.between(1, 24);
         const Shape s{n, h, l, e};
         return attention(d.leaf(b, s), d.leaf(b, s), d.leaf(b, s), AttentionConfig{}.with_causal(d.coin()));
       }},
      {"conv2d",
       [=](B& b, Draw& d) {
         const Shape s = image(d);
         const std::int64_t out = d.between(1, 5);
         return conv2d(d.leaf(b, s), d.leaf(b, {out, s[1], 3, 3}), d.leaf(b, {out}),
                       Conv2dConfig{}.with_padding(d.between(0, 1)).with_stride(d.between(1, 2)));
       }},
      {"max_pool2d", [=](B& b, Draw& d) { return max_pool2d(d.leaf(b, image(d)), PoolConfig(2)); }},
      {"avg_pool2d", [=](B& b, Draw& d) { return avg_pool2d(d.leaf(b, image(d)), PoolConfig(2)); }},
      {"dropout", [=](B& b, Draw& d) { return dropout(d.leaf(b, rows(d)), 0.3, d.rng); }},
      {"embedding",
       [](B& b, Draw& d) {
         const std::int64_t n = d.size(), w = d.size();
         return embedding(d.leaf(b, {n, w}), randint(b, {d.size()}, d.rng, 0, n));
       }},
      {"cross_entropy",
       [=](B& b, Draw& d) {
         const Shape s = rows(d);
         return softmax_cross_entropy(d.leaf(b, s), randint(b, {s[0]}, d.rng, 0, s[1]),
                                      CrossEntropyConfig{}.with_label_smoothing(d.coin() ? 0.1 : 0));
       }},
      {"linear_cross_entropy",
       [=](B& b, Draw& d) {
         const std::int64_t n = d.size(), k = d.size(), classes = d.size(), padding = d.between(0, 2);
         return linear_cross_entropy(d.leaf(b, {n, k}), d.leaf(b, {classes + padding, k}),
                                     randint(b, {n}, d.rng, 0, classes),
                                     CrossEntropyConfig{}.with_classes(classes));
       }},
      {"losses",
       [=](B& b, Draw& d) {
         const Shape s = rows(d);
         const T x = d.leaf(b, s), y = d.tensor(b, s);
         return mse_loss(x, y) + l1_loss(x, y) + huber_loss(x, y, 0.7) + bce_with_logits(x, sigmoid(y));
       }},
      {"statistics",
       [=](B& b, Draw& d) {
         const Shape s = rows(d);
         const auto all = [](const T& x) {
           return mean(x, {1}) + var(x, {1}, KeepDim::no, 0) + logsumexp(x, {1}) + norm(x, 2, {1}) +
                  norm(x, 1, {1});
         };
         return all(d.leaf(b, s)) + all(d.tensor(b, s));  // composed and fused
       }},
      {"reductions",
       [=](B& b, Draw& d) {
         const T x = d.leaf(b, rows(d));
         return sum(x, {0}) + max(x, {0}) + min(x, {0});
       }},
      {"cumsum", [=](B& b, Draw& d) { return cumsum(d.leaf(b, rows(d)), d.coin() ? 0 : 1); }},
      {"unary",
       [=](B& b, Draw& d) {
         const T x = d.leaf(b, rows(d));
         return tanh(x) + sigmoid(x) + gelu(x) + silu(x) + softplus(x) + relu(x) + erf(x) + sin(x) +
                log1p(square(x)) + sqrt(abs(x) + 0.5) + exp(-abs(x));
       }},
      {"binary",
       [=](B& b, Draw& d) {
         const Shape s = rows(d);
         const T x = d.leaf(b, s), y = d.leaf(b, {s[1]});
         return x * y + x / (abs(y) + 0.5) - maximum(x, y) + atan2(x, y) + pow(abs(x) + 0.1, 1.7);
       }},
      {"scatter_add",
       [](B& b, Draw& d) {
         const std::int64_t n = d.size(), m = d.size(), w = d.size();
         const T index = expand(randint(b, {m, 1}, d.rng, 0, n), {m, w});
         return scatter_add(d.leaf(b, {n, w}), 0, index, d.leaf(b, {m, w}));
       }},
  };
}

/// Runs a call and its gradient under a random root.
template <class B>
void run_random_call(B& b, const RandomCall<B>& call, Draw d) {
  const Tensor<B> y = call(b, d);
  sum(y * randn(b, y.shape(), d.rng, 0, 1, y.dtype())).backward();
}

}  // namespace ferrite::testing
