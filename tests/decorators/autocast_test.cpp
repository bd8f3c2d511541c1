// Mixed precision: which ops get 16 bits, what stays f32, and that training comes out the same.
#include <gtest/gtest.h>

#include <cmath>

#include "ferrite/nn/linear.hpp"
#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/optim/adam.hpp"
#include "ferrite/optim/sgd.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using A = Autocast<Cpu>;
using Mixed = Autodiff<A>;
using Values = std::vector<float>;

template <class B>
Tensor<B> ramp(B& b, const Shape& shape, float scale = 0.01f) {
  Values values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (static_cast<float>(i % 37) - 18);
  return from_vector(b, values, shape);
}

TEST(Autocast, LowersProductsAndLeavesTheRest) {
  A b;
  const auto x = ramp(b, {4, 8}), w = ramp(b, {6, 8}), bias = ramp(b, {6});
  EXPECT_EQ(matmul(x, transpose(w, 0, 1)).dtype(), DType::bf16);
  EXPECT_EQ(linear(x, w, bias, Activation::gelu).dtype(), DType::bf16);
  EXPECT_EQ(embedding(w, from_vector(b, std::vector<std::int64_t>{1, 2})).dtype(), DType::bf16);
  const auto q = ramp(b, {1, 2, 5, 8});
  EXPECT_EQ(attention(q, q, q).dtype(), DType::bf16);
  EXPECT_EQ(conv2d(ramp(b, {1, 2, 5, 5}), ramp(b, {3, 2, 3, 3})).dtype(), DType::bf16);
  EXPECT_EQ((x + x).dtype(), DType::f32);
  EXPECT_EQ(softmax(x).dtype(), DType::f32);
  EXPECT_EQ(sum(x).dtype(), DType::f32);
}

TEST(Autocast, RoundsAsACastByHandDoes) {
  A b;
  Cpu cpu;
  const auto by_hand = linear(cast(ramp(cpu, {4, 8}), DType::bf16), cast(ramp(cpu, {6, 8}), DType::bf16));
  EXPECT_EQ(linear(ramp(b, {4, 8}), ramp(b, {6, 8})).to_vector<float>(), by_hand.to_vector<float>());
}

TEST(Autocast, LeavesF64AndIntegersAlone) {
  A b;
  const auto x = cast(ramp(b, {3, 3}), DType::f64);
  EXPECT_EQ(matmul(x, x).dtype(), DType::f64);
  const auto n = reshape(arange(b, 4), {2, 2});
  EXPECT_EQ(matmul(n, n).dtype(), DType::i64);
}

TEST(Autocast, TakesF16AndRefusesAnythingWider) {
  A b(AutocastConfig{}.with_dtype(DType::f16));
  EXPECT_EQ(matmul(ramp(b, {2, 2}), ramp(b, {2, 2})).dtype(), DType::f16);
  EXPECT_NE(b.describe().find("autocast(f16) over "), std::string::npos) << b.describe();
  EXPECT_THROW(A(AutocastConfig{}.with_dtype(DType::f32)), ValueError);
}

TEST(Autocast, GradientsHaveTheDtypeOfTheirParameter) {
  Mixed b;
  const auto w = parameter(ramp(b, {6, 8}), "w"), bias = parameter(ramp(b, {6}), "bias");
  const auto table = parameter(ramp(b, {5, 8}), "table");
  const auto x = embedding(table, from_vector(b, std::vector<std::int64_t>{1, 4, 1}));
  const auto y = linear(x, w, bias, Activation::gelu);
  ASSERT_EQ(y.dtype(), DType::bf16);
  const auto grads = sum(cast(y, DType::f32)).backward();
  for (const auto& leaf : {w, bias, table}) EXPECT_EQ(grads.of(leaf).dtype(), DType::f32);
}

TEST(Autocast, WeightGradientsAreNotRoundedTo16Bits) {
  Mixed b;
  // Every product is exact in bf16; their sum, 1 + 2^-8, is not.
  const auto x = from_vector(b, Values{1, 0.00390625f}, {2, 1});
  const auto w = parameter(from_vector(b, Values{1}, {1, 1}), "w");
  const auto bias = parameter(from_vector(b, Values{0}), "bias");
  const auto scale = from_vector(b, Values{1, 0.00390625f}, {2, 1});
  EXPECT_EQ(sum(linear(x, w, bias)).backward().of(w).item<float>(), 1.00390625f);
  EXPECT_EQ(sum(linear(x, w, bias) * scale).backward().of(bias).item<float>(), 1.00390625f);
}

TEST(Autocast, GradientsOfConvolutionsAreNotRoundedEither) {
  Mixed b;
  const auto x = from_vector(b, Values{1, 0.00390625f}, {2, 1, 1, 1});
  const auto w = parameter(from_vector(b, Values{1}, {1, 1, 1, 1}), "w");
  const auto bias = parameter(from_vector(b, Values{0}), "bias");
  const auto scale = from_vector(b, Values{1, 0.00390625f}, {2, 1, 1, 1});
  EXPECT_EQ(sum(conv2d(x, w, bias)).backward().of(w).item<float>(), 1.00390625f);
  EXPECT_EQ(sum(conv2d(x, w, bias) * scale).backward().of(bias).item<float>(), 1.00390625f);
}

TEST(Autocast, AResidualOfAProductIsInSixteenBitsToo) {
  A b;
  const auto x = ramp(b, {4, 8}), w = ramp(b, {6, 8}), r = ramp(b, {4, 6}, 0.125f);
  EXPECT_EQ(linear(x, w, {}, Activation::none, r).dtype(), DType::bf16);
  // One that is wider than x keeps its dtype.
  const auto sum = linear(cast(x, DType::bf16), w, {}, Activation::none, r);
  EXPECT_EQ(sum.dtype(), DType::f32);
  EXPECT_EQ(sum.to_vector<float>(), (linear(x, w) + r).to_vector<float>());
}

TEST(Autocast, RoundsAParameterOnceUntilItChanges) {
  using P = Autodiff<Autocast<Profiled<Cpu>>>;
  P b;
  auto& profiled = b.inner().inner();
  const auto casts = [&] {
    std::int64_t calls = 0;
    for (const OpProfile& row : profiled.profile().ops)
      if (row.name == "copy" || row.name == "cast") calls += row.calls;
    return calls;
  };
  const auto w = parameter(ramp(b, {6, 8}), "w");
  const auto x = cast(ramp(b, {4, 8}), DType::bf16);
  const auto product = [&] { return matmul(x, transpose(w, 0, 1)); };
  const std::int64_t at_first = casts();
  const auto before = product();
  EXPECT_EQ(casts(), at_first + 1);
  product();
  matmul(w, transpose(x, 0, 1));  // another view of the same parameter
  EXPECT_EQ(casts(), at_first + 1);

  assign(w, to_host(ramp(b, {6, 8}, 0.5f)));
  const std::int64_t at_change = casts();
  const auto after = product().template to_vector<float>();
  EXPECT_GT(casts(), at_change);
  EXPECT_NE(after, before.template to_vector<float>());
  Cpu cpu;
  const auto truth = matmul(cast(ramp(cpu, {4, 8}), DType::bf16),
                            transpose(cast(ramp(cpu, {6, 8}, 0.5f), DType::bf16), 0, 1));
  EXPECT_EQ(after, truth.to_vector<float>());
}

TEST(Autocast, AdamWritesTheCopiesAlongWithTheParameters) {
  using P = Autodiff<Autocast<Profiled<Cpu>>>;
  P b;
  auto& profiled = b.inner().inner();
  Rng rng(3);
  nn::Linear<P> layer(b, {8, 6}, rng);
  optim::AdamW<P> optimizer(layer.parameters());
  const auto x = cast(ramp(b, {4, 8}), DType::bf16);
  const auto step = [&] { optimizer.step(sum(square(layer.forward(x))).backward()); };
  const auto casts_of_a_step = [&] {
    profiled.reset();
    step();
    std::int64_t calls = 0;
    for (const OpProfile& row : profiled.profile().ops)
      if (row.name == "copy" || row.name == "cast") calls += row.calls;
    return calls;
  };
  const std::int64_t first = casts_of_a_step();  // of weight and bias, beside those of gradients on the CPU
  EXPECT_EQ(casts_of_a_step(), first - 2);
  EXPECT_EQ(casts_of_a_step(), first - 2);
  const auto expect_current = [&] {
    for (const auto& p : {layer.weight, layer.bias}) {
      const Array master = p.primitive().value;
      const Array copy = b.inner().copy_of(master);
      ASSERT_TRUE(copy.defined());
      const Tensor<Autocast<Profiled<Cpu>>> want(b.inner(), master), got(b.inner(), copy);
      EXPECT_EQ(got.to_vector<float>(), cast(want, DType::bf16).to_vector<float>());
    }
  };
  expect_current();
  // A state that is loaded reaches the copies before a captured step would run again.
  assign(layer.weight, to_host(ramp(b, {6, 8}, 0.5f)));
  b.inner().refresh();
  expect_current();
}

/// The losses of a small network over some steps.
template <class B>
std::vector<double> train(B b) {
  Rng rng(3);
  nn::Linear<B> first(b, {16, 32}, rng), second(b, {32, 4}, rng);
  auto parameters = first.parameters();
  for (auto p : second.parameters()) {
    p.name = "second." + p.name;
    parameters.push_back(p);
  }
  optim::Sgd<B> optimizer(parameters, optim::SgdConfig{}.with_lr(0.1));
  const auto x = ramp(b, {64, 16}, 0.1f);
  std::vector<std::int64_t> classes(64);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 4);
  const auto targets = from_vector(b, classes);
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    const auto loss = softmax_cross_entropy(second.forward(relu(first.forward(x))), targets);
    losses.push_back(loss.template item<double>());
    optimizer.step(loss.backward());
  }
  return losses;
}

TEST(Autocast, TrainsAsF32DoesButForRounding) {
  const auto exact = train(Autodiff<Cpu>()), mixed = train(Mixed());
  EXPECT_LT(exact.back(), 0.98 * exact.front());
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(mixed[i], exact[i], 2.0 / 256 * exact[i]) << i;
}

}  // namespace
}  // namespace ferrite
