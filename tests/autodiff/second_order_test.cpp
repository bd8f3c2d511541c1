// Autodiff<Autodiff<B>>: gradients of gradients.
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/stacks.hpp"

#include <gtest/gtest.h>

namespace ferrite {
namespace {

using First = Autodiff<Reference>;
using Second = Autodiff<First>;

/// A small network with most kinds of ops in it, as a function of its flattened parameters.
template <class B>
Tensor<B> network_loss(const Tensor<B>& theta, const Tensor<B>& x) {
  const auto w1 = reshape(slice(theta, 0, 0, 12), {3, 4}), w2 = reshape(slice(theta, 0, 12, 18), {2, 3});
  const auto hidden = linear(x, w1, {}, Activation::gelu);
  const auto normed = layer_norm(hidden, slice(theta, 0, 18, 21), slice(theta, 0, 21, 24));
  const auto logits = linear(normed, w2);
  const auto targets = from_vector(theta.backend(), std::vector<std::int64_t>{0, 1, 1, 0, 1});
  return softmax_cross_entropy(logits, targets) + sum(square(softmax(logits))) * 0.1;
}

TEST(SecondOrder, HessianVectorProductMatchesFiniteDifferences) {
  Second outer;
  First& inner = outer.inner();
  Reference& reference = inner.inner();
  Rng rng(7);
  const auto theta0 = randn(reference, {24}, rng, 0, 0.5, DType::f64),
             v0 = randn(reference, {24}, rng, 0, 1, DType::f64);
  const auto x0 = randn(reference, {5, 4}, rng, 0, 1, DType::f64);

  const auto theta1 = parameter(lift(inner, theta0), "theta");
  const auto theta2 = parameter(lift(outer, theta1), "theta");
  const auto loss = network_loss(theta2, lift(outer, lift(inner, x0)));
  const Tensor<First> gradient = loss.backward().of(theta2);
  const auto hvp = sum(gradient * lift(inner, v0)).backward().of(theta1).to_vector<double>();

  const auto gradient_at = [&](const Tensor<Reference>& theta) {
    First b;
    const auto p = parameter(to(b, theta), "theta");
    return network_loss(p, to(b, x0)).backward().of(p).to_vector<double>();
  };
  const double h = 1e-5;
  const auto up = gradient_at(theta0 + v0 * h), down = gradient_at(theta0 - v0 * h);
  for (std::size_t i = 0; i < hvp.size(); ++i) EXPECT_NEAR(hvp[i], (up[i] - down[i]) / (2 * h), 1e-6) << i;
}

TEST(SecondOrder, ThirdDerivativeOfASine) {
  Autodiff<Second> b;
  const auto x0 = full(b.inner().inner().inner(), {}, 0.7, DType::f64);
  const auto x1 = parameter(lift(b.inner().inner(), x0), "x");
  const auto x2 = parameter(lift(b.inner(), x1), "x");
  const auto x3 = parameter(lift(b, x2), "x");
  const auto d1 = sin(x3).backward().of(x3);
  const auto d2 = d1.backward().of(x2);
  EXPECT_NEAR(d2.backward().of(x1).item<double>(), -std::cos(0.7), 1e-12);
}

}  // namespace
}  // namespace ferrite
